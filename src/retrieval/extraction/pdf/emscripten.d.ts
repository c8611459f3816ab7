/** The parts in use of the types that `@embedpdf/pdfium` refers to. */
interface EmscriptenModule {
  readonly HEAPU8: Uint8Array<ArrayBuffer>
  readonly wasmBinary: ArrayBuffer
}
