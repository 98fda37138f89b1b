// Plain JavaScript, so that an old Node reads it and says one clear line instead of a syntax error.
const WANTED_MAJOR = 26;

if (Number.parseInt(process.versions.node, 10) < WANTED_MAJOR) {
  process.stderr.write(
    `Paybell's own commands need Node ${WANTED_MAJOR} and found ${process.versions.node}: run "npm ci", which installs it ` +
      "for this project as an optional package (not with --omit=optional), then start the command through npm.\n",
  );
  process.exit(1);
}
