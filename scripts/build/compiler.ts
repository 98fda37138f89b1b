/**
 * TypeScript's compiler is a program in Go. Most of what it allocates lives until its end, so it does not collect the
 * rest. Measured in processor time: the check of all types 7.3 s in place of 9.6 s, with 1.3 GB in place of 1.2 GB, and
 * the build of all packages 5.6 s in place of 9.8 s.
 */
export const compilerEnv = { GOGC: "off" } as const;
