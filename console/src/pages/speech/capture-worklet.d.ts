/** The address of the built file, relative to the script that imports it. */
declare const path: string
// biome-ignore lint/style/noDefaultExport: the build makes it
export default path
