// Files that ship with this program, imported with the type `file`: the value is their path.
declare module '*.wasm' {
  const path: string

  export default path
}
declare module '*.data' {
  const path: string

  export default path
}
declare module '*.tar.gz' {
  const path: string

  export default path
}
declare module '*.tiktoken' {
  const path: string

  export default path
}
declare module '*.css' {
  const path: string

  export default path
}
// Scripts of web pages; no script is imported as a module.
declare module '*.js' {
  const path: string

  export default path
}
