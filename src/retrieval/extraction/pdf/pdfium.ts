import { init, type WrappedPdfiumModule } from '@embedpdf/pdfium'
import program from '@embedpdf/pdfium/pdfium.wasm' with { type: 'file' }
import { readOwnFile } from '#lib/own-program.ts'
import { UnreadableFile } from '../unreadable.ts'

/** PDFium, compiled to WebAssembly: the parser and renderer of a browser, with all predefined CMaps. */

/** Of one string, such as the value of a form field. */
const stringBytesMax = 1_048_576
const passwordError = 4

export type Pdfium = WrappedPdfiumModule

export type Pdf = {
  readonly pdfium: Pdfium
  /** Handles of PDFium. */
  readonly document: number
  readonly form: number
  readonly pagesCount: number
}

/** The process reads one file, so that nothing is released at the end. */
export async function openPdf(bytes: Uint8Array): Promise<Pdf> {
  const pdfium = await init({ wasmBinary: (await readOwnFile(program)).buffer })
  pdfium.PDFiumExt_Init()
  const document = pdfium.FPDF_LoadCustomDocument(fileAccess(pdfium, bytes), '')
  if (document === 0) {
    const isEncrypted = pdfium.FPDF_GetLastError() === passwordError
    throw new UnreadableFile(isEncrypted ? 'encrypted' : 'invalid_file')
  }
  const form = pdfium.PDFiumExt_InitFormFillEnvironment(
    document,
    pdfium.PDFiumExt_OpenFormFillInfo(),
  )
  return { pdfium, document, form, pagesCount: pdfium.FPDF_GetPageCount(document) }
}

/** An `FPDF_FILEACCESS`, which reads parts of the file without a copy of it. */
function fileAccess(pdfium: Pdfium, bytes: Uint8Array): number {
  const { addFunction } = pdfium.pdfium
  const readBlock = (_: number, position: number, target: number, length: number): number => {
    const block = bytes.subarray(position, position + length)
    if (block.length < length) return 0
    pdfium.pdfium.HEAPU8.set(block, target)
    return 1
  }
  const fields = new Uint32Array([bytes.length, addFunction(readBlock, 'iiiii'), 0])
  const address = allocate(pdfium, fields.byteLength)
  pdfium.pdfium.HEAPU8.set(new Uint8Array(fields.buffer), address)
  return address
}

/** Throws `RangeError` above the memory limit of the process. */
export function allocate({ pdfium }: Pdfium, bytes: number): number {
  const address = pdfium.wasmExports.malloc(bytes)
  if (address === 0) throw new RangeError('out of memory')
  return address
}

/** The result of a function that writes UTF-16 into a buffer and returns its length in bytes. */
export function readString(
  { pdfium }: Pdf,
  write: (buffer: number, bufferBytes: number) => number,
): string {
  const bytes = Math.min(write(0, 0), stringBytesMax)
  if (bytes <= 2) return ''
  const buffer = allocate(pdfium, bytes)
  write(buffer, bytes)
  const text = utf16At(pdfium, buffer, bytes / 2 - 1)
  pdfium.pdfium.wasmExports.free(buffer)
  return text
}

export function utf16At({ pdfium }: Pdfium, address: number, units: number): string {
  return new TextDecoder('utf-16le').decode(
    pdfium.HEAPU8.subarray(address, address + Math.floor(units) * 2),
  )
}
