// The default theme, without its font: a page loads no fonts.
export { default } from "vitepress/theme-without-fonts";
