import relativeLinks from "markdownlint-rule-relative-links";

/** Style of documents, and their relative links: files, headings, images. */
export default {
  config: {
    "relative-links": true,
    // Tables and links are wider than a line of prose; examples have tabs; several steps share a list's number.
    MD013: false,
    MD010: false,
    // "C#" ends a heading, and code may begin with a space.
    MD020: false,
    MD038: false,
    MD029: false,
    MD060: false,
    // HTML of the tutorial, addresses that are examples, and sentences in bold or italics are meant.
    MD033: false,
    MD034: false,
    MD036: false,
    MD049: false,
  },
  customRules: [relativeLinks],
  globs: ["**/*.md"],
  ignores: ["**/node_modules/**", "**/dist/**", "test/support/document-fixtures/**"],
};
