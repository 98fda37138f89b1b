import { readFile } from "node:fs/promises";
import { ConfigError } from "../config.ts";

/** Reads a file that a setting names. @throws ConfigError naming the setting and the file */
export async function readNamedFile(setting: string, path: string): Promise<Buffer> {
  return await readFile(path).catch((error: NodeJS.ErrnoException) => {
    const why = error.code === "ENOENT" ? "does not exist" : `cannot be read: ${error.code ?? error.message}`;
    throw new ConfigError([`${setting} (${path}) ${why}`]);
  });
}

/** The files of a TLS connection; null: not set. */
interface TlsFiles {
  readonly ca: string | null;
  readonly certificate: string | null;
  readonly key: string | null;
}

/** Reads the PEM files of `PREFIX_CA_FILE`, `PREFIX_CERTIFICATE_FILE` and `PREFIX_KEY_FILE`. @throws ConfigError */
export async function readTlsFiles(
  prefix: string,
  files: TlsFiles,
): Promise<{ readonly ca?: Buffer; readonly cert?: Buffer; readonly key?: Buffer }> {
  const read = async (name: string, path: string | null) =>
    path === null ? undefined : await readNamedFile(`${prefix}_${name}_FILE`, path);
  const [ca, cert, key] = await Promise.all([
    read("CA", files.ca),
    read("CERTIFICATE", files.certificate),
    read("KEY", files.key),
  ]);
  return { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
}
