import type { Pdf } from './pdfium.ts'
import { renderPage } from './render.ts'

export type OcrRequest = {
  /** The path of Tesseract. */
  readonly program: string
  readonly languages: string
  readonly pagesMax: number
  /** Of all pages of a file. */
  readonly totalMs: number
}

/** The resolution that Tesseract is trained for; an A3 page needs 52 MB. */
const size = { dpi: 300, sideMax: 5_000 }
const textCharsMax = 1_048_576

/** Recognizes the text of pages in a process with the limits of this one. */
export function createOcr(pdf: Pdf, { program, languages, pagesMax, totalMs }: OcrRequest) {
  const command = [program, 'stdin', 'stdout', '-l', languages, '--dpi', String(size.dpi)]
  const end = performance.now() + totalMs
  let pages = 0

  async function recognize(picture: Uint8Array, leftMs: number): Promise<string> {
    const tesseract = Bun.spawn(command, {
      // Not a file: this process may not write any.
      stdio: ['pipe', 'pipe', 'ignore'],
      env: { OMP_THREAD_LIMIT: '1' },
      timeout: Math.ceil(leftMs),
      killSignal: 'SIGKILL',
    })
    tesseract.stdin.write(picture)
    const [text] = await Promise.all([
      new Response(tesseract.stdout).text(),
      Promise.resolve(tesseract.stdin.end()).catch(() => {}),
    ])
    return (await tesseract.exited) === 0 ? text.slice(0, textCharsMax) : ''
  }

  return {
    /** Empty for a page above the limits, and if nothing is recognized. */
    async read(index: number): Promise<string> {
      const leftMs = end - performance.now()
      if (pages === pagesMax || leftMs <= 0) return ''
      pages += 1
      const picture = renderPage(pdf, index, size)
      if (picture === null) return ''
      // A failure of Tesseract leaves the page without text.
      const text = await recognize(picture, leftMs).catch(() => '')
      // The pictures reach the memory limit of the process before the collector would run.
      Bun.gc(true)
      return text
    },
  }
}
