import fc from "fast-check";

/**
 * The seed of the values that properties are tried with. It is the same in every run, so that a commit that passed
 * passes again; TEST_SEED tries other values.
 */
const propertySeed = Number(process.env["TEST_SEED"] ?? 20_261_124);

// A bound means what it says. By default sequences end at ten or so, whatever their bound is.
fc.configureGlobal({ seed: propertySeed, defaultSizeToMaxWhenMaxSpecified: true });
