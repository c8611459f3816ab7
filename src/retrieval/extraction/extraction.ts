import type { Config } from '#config/schema.ts'
import { AppError } from '#lib/errors.ts'
import { roleCommand } from '#lib/own-program.ts'
import { orAfter } from '#lib/time-limit.ts'
import type { Log } from '#telemetry/log.ts'
import { type ChildOutput, type ChildRequest, readOutput, textFormatOf } from './child-protocol.ts'
import type { DocumentText, PageImage } from './document-text.ts'
import { type TextWarning, warningOf } from './gaps.ts'
import type { OcrRequest } from './pdf/ocr.ts'
import { createSemaphore } from './semaphore.ts'
import { UnreadableFile } from './unreadable.ts'

type SourceFile = {
  readonly name: string
  readonly mimeType: string
  readonly bytes: number
}

/** The text of a file, and what it lacks. */
export type ExtractedText = DocumentText & { readonly warnings: readonly TextWarning[] }

/** Also with pictures of pages without text. */
export type ExtractedDocument = ExtractedText & { readonly images: readonly PageImage[] }

export type ExtractionLimits = Pick<
  Config['retrieval'],
  | 'textCharsMax'
  | 'extractMs'
  | 'extractMemoryBytesMax'
  | 'extractionsMax'
  | 'ocrLanguages'
  | 'ocrPagesMax'
>

/** Incremented when a release may extract another text. */
const version = 3
/** The child holds the file and its unpacked content. */
const memoryPerFileByte = 4
/** How long a child may take to exit after the end of its output. */
const exitWaitMaxMs = 1_000
/** CPU time exceeds elapsed time, since threads count separately. */
const cpuTimeFactor = 2
const openFilesMax = 64

const childEnvironment = {
  // The child may not write files.
  BUN_RUNTIME_TRANSPILER_CACHE_PATH: '0',
  // The default reservation exceeds the memory limit; without any, the child is thirty times slower.
  BUN_JSC_jitMemoryReservationSize: String(32 * 1024 * 1024),
}

export type Extraction = ReturnType<typeof createExtraction>

/** Extracts the text of files, each in a child process with limited rights, memory and time. */
export function createExtraction({
  limits,
  log,
}: {
  limits: ExtractionLimits
  log: Pick<Log, 'warn'>
}) {
  const semaphore = createSemaphore(limits.extractionsMax)
  const command = limitedCommand(limits, log)
  const ocr = ocrOf(limits)

  async function run(
    request: ChildRequest,
    content: ReadableStream<Uint8Array>,
    signal: AbortSignal,
  ) {
    const child = Bun.spawn(command, {
      // Outside of any project, whose settings Bun would load.
      cwd: '/',
      env: childEnvironment,
      stdio: ['pipe', 'pipe', 'ignore'],
      // A process group, since it may start Tesseract.
      detached: true,
    })
    const reader = content.getReader()
    const kill = () => killGroup(child.pid)
    let isTimedOut = false
    const timer = setTimeout(() => {
      isTimedOut = true
      kill()
    }, limits.extractMs)
    signal.addEventListener('abort', kill, { once: true })
    if (signal.aborted) kill()
    // Not awaited: the source may never end if the child exits early.
    let sourceFailure: { error: unknown } | null = null
    sendInput(child.stdin, request, reader).catch((error: unknown) => {
      sourceFailure = { error }
      kill()
    })
    try {
      const output = await readOutput(child.stdout, limits.textCharsMax)
      signal.throwIfAborted()
      rethrow(sourceFailure)
      if (output.report === null && isTimedOut) throw new UnreadableFile('extraction_limit')
      if (output.report === null) await orAfter(child.exited, exitWaitMaxMs, null)
      return documentOf(output, String(child.signalCode ?? child.exitCode))
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', kill)
      kill()
      await Promise.all([
        reader.cancel().catch(() => {}),
        orAfter(child.exited, exitWaitMaxMs, null),
      ])
    }
  }

  return {
    /** The key under which the extracted text of a content can be cached. */
    extractorOf: ({ name, mimeType }: SourceFile) =>
      `${version}-${textFormatOf(name, mimeType)}${ocr === null ? '' : '-ocr'}`,
    /** Throws `UnreadableFile` if the file is the cause, an `AppError` otherwise, and errors of `open`. */
    async extract(
      file: SourceFile,
      open: () => Promise<ReadableStream<Uint8Array>>,
      signal: AbortSignal,
      { pageImages = false }: { pageImages?: boolean } = {},
    ): Promise<ExtractedDocument> {
      if (file.bytes * memoryPerFileByte > limits.extractMemoryBytesMax) {
        throw new UnreadableFile('too_large')
      }
      const release = await semaphore.acquire(signal)
      try {
        const format = textFormatOf(file.name, file.mimeType)
        const { bytes } = file
        const request = { format, charsMax: limits.textCharsMax, bytes, pageImages, ocr }
        return await run(request, await open(), signal)
      } finally {
        release()
      }
    },
  }
}

/** Share of the time of an extraction that recognition may take. */
const ocrTimeShare = 0.5

/** Null where Tesseract is not installed or switched off. */
function ocrOf({ ocrLanguages, ocrPagesMax, extractMs }: ExtractionLimits): OcrRequest | null {
  const program = Bun.which('tesseract')
  if (program === null || ocrPagesMax === 0) return null
  return {
    program,
    languages: ocrLanguages,
    pagesMax: ocrPagesMax,
    totalMs: extractMs * ocrTimeShare,
  }
}

/** Without `prlimit`, only time is limited. */
function limitedCommand(limits: ExtractionLimits, log: Pick<Log, 'warn'>): string[] {
  const command = roleCommand('extract-text')
  const prlimit = Bun.which('prlimit')
  if (prlimit === null) {
    log.warn('prlimit not found, memory of text extraction is not limited')
    return command
  }
  const cpuSeconds = Math.ceil((limits.extractMs / 1000) * cpuTimeFactor) + 1
  return [
    prlimit,
    `--data=${limits.extractMemoryBytesMax}`,
    `--cpu=${cpuSeconds}:${cpuSeconds + 1}`,
    `--nofile=${openFilesMax}`,
    '--fsize=0',
    '--core=0',
    ...command,
  ]
}

type ChildInput = Bun.Subprocess<'pipe', 'pipe', 'ignore'>['stdin']

/** Streams the request and the file with backpressure; rejects if the source fails. */
async function sendInput(
  input: ChildInput,
  request: ChildRequest,
  content: { read(): Promise<{ value?: Uint8Array | undefined }> },
): Promise<void> {
  let next: string | Uint8Array | undefined = `${JSON.stringify(request)}\n`
  while (next !== undefined && (await tryWrite(input, next))) {
    next = (await content.read()).value
  }
  await Promise.resolve(input.end()).catch(() => {})
}

/** False if the child has exited; its output says why. */
async function tryWrite(input: ChildInput, data: string | Uint8Array): Promise<boolean> {
  try {
    input.write(data)
    await input.flush()
    return true
  } catch {
    return false
  }
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // It has exited.
  }
}

function rethrow(failure: { error: unknown } | null): void {
  if (failure !== null) throw failure.error
}

/** Not sent by the limits: the system or an operator has ended the child. */
const externalSignals: ReadonlySet<string> = new Set(['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP'])

function documentOf(
  { isReady, report, text, images }: ChildOutput,
  exitStatus: string,
): ExtractedDocument {
  const warnings = report?.gaps.map(warningOf) ?? []
  if (report?.type === 'read') return { text, pages: report.pages, images, warnings }
  if (report?.type === 'unreadable') throw new UnreadableFile(report.code, undefined, warnings)
  const cause = new Error(`the extraction process ended with ${exitStatus}`)
  if (!isReady) {
    throw new AppError('internal_error', 'The text extraction failed to start.', { cause })
  }
  if (externalSignals.has(exitStatus)) {
    throw new AppError('service_unavailable', 'The text extraction was interrupted.', { cause })
  }
  throw new UnreadableFile('extraction_limit', cause)
}
