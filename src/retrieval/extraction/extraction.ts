import { fileURLToPath } from 'node:url'
import type { Config } from '#config/schema.ts'
import { AppError } from '#lib/errors.ts'
import { orAfter } from '#lib/time-limit.ts'
import type { Log } from '#telemetry/log.ts'
import { type ChildAnswer, readAnswer } from './child-answer.ts'
import type { ChildRequest } from './child-messages.ts'
import type { DocumentText } from './document-text.ts'
import { createJail } from './jail.ts'
import { createPlaces } from './places.ts'
import { type TextFormat, textFormatOf } from './text-format.ts'
import { UnreadableFile } from './unreadable.ts'

type SourceFile = {
  readonly name: string
  readonly mimeType: string
  readonly bytes: number
}

/** Reads the text of files, each in a process of its own that may do little and not for long. */
export type Extraction = {
  /**
   * Names how a file is read. What was read of a content by one extractor need not be read again;
   * another name means that it may come out otherwise.
   */
  extractorOf(file: SourceFile): string
  /**
   * Throws `UnreadableFile` where the file is to blame, an `AppError` where we are, and what opening
   * the content throws.
   */
  extract(
    file: SourceFile,
    open: () => Promise<ReadableStream<Uint8Array>>,
    signal: AbortSignal,
  ): Promise<DocumentText>
}

export type ExtractionLimits = Pick<
  Config['retrieval'],
  'textCharsMax' | 'extractMs' | 'extractMemoryBytesMax' | 'extractionsMax'
>

/** Counts up with every release that may read a file otherwise. */
const version = 1
/** A file is held as a whole beside what it unpacks to. */
const memoryPerFileByte = 4
/** How long a process whose output has ended may take to end. */
const exitWaitMaxMs = 1_000
/** Threads count apart, so a process may take more of the processors' time than passes. */
const processorTimePerTime = 2

const childEnvironment = {
  // It may write no file.
  BUN_RUNTIME_TRANSPILER_CACHE_PATH: '0',
  // The usual reservation for compiled code is beyond what a jailed process may have, and without
  // any, everything takes thirty times as long.
  BUN_JSC_jitMemoryReservationSize: String(32 * 1024 * 1024),
}

const program = fileURLToPath(new URL('./child.ts', import.meta.url))

export function createExtraction(deps: {
  limits: ExtractionLimits
  log: Pick<Log, 'warn'>
}): Extraction {
  const { limits, log } = deps
  const jail = createJail(log)
  const places = createPlaces(limits.extractionsMax)
  const command = jail([process.execPath, program], {
    memoryBytesMax: limits.extractMemoryBytesMax,
    processorSecondsMax: Math.ceil((limits.extractMs / 1000) * processorTimePerTime) + 1,
  })

  async function run(format: TextFormat, content: ReadableStream<Uint8Array>, signal: AbortSignal) {
    const child = Bun.spawn(command, {
      // Where no settings of a developer are found, with nothing of our environment.
      cwd: '/',
      env: childEnvironment,
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    const reader = content.getReader()
    const kill = () => child.kill('SIGKILL')
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      kill()
    }, limits.extractMs)
    signal.addEventListener('abort', kill, { once: true })
    if (signal.aborted) kill()
    const request: ChildRequest = { format, charsMax: limits.textCharsMax }
    // What it waits for may never come where the child has ended, so it is not waited for.
    let sourceFailure: { error: unknown } | null = null
    feed(child.stdin, request, reader).catch((error: unknown) => {
      sourceFailure = { error }
      kill()
    })
    try {
      const answer = await readAnswer(child.stdout, limits.textCharsMax)
      signal.throwIfAborted()
      rethrow(sourceFailure)
      if (answer.report === null && isLate) throw new UnreadableFile('extraction_limit')
      if (answer.report === null) await orAfter(child.exited, exitWaitMaxMs, null)
      return textOf(answer, String(child.signalCode ?? child.exitCode))
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
    extractorOf: ({ name, mimeType }) => `${version}-${textFormatOf(name, mimeType)}`,
    async extract(file, open, signal) {
      if (file.bytes * memoryPerFileByte > limits.extractMemoryBytesMax) {
        throw new UnreadableFile('too_large')
      }
      const leave = await places.enter(signal)
      try {
        const format = textFormatOf(file.name, file.mimeType)
        return await run(format, await open(), signal)
      } finally {
        leave()
      }
    },
  }
}

type Child = Bun.Subprocess<'pipe', 'pipe', 'ignore'>

/** Gives a child its input at its speed; rejects where the source fails. */
async function feed(
  input: Child['stdin'],
  request: ChildRequest,
  content: { read(): Promise<{ value?: Uint8Array | undefined }> },
): Promise<void> {
  let next: string | Uint8Array | undefined = `${JSON.stringify(request)}\n`
  while (next !== undefined && (await give(input, next))) {
    next = (await content.read()).value
  }
  await Promise.resolve(input.end()).catch(() => {})
}

/** A child that has ended takes no more, and its answer says what became of it. */
async function give(input: Child['stdin'], data: string | Uint8Array): Promise<boolean> {
  try {
    input.write(data)
    await input.flush()
    return true
  } catch {
    return false
  }
}

function rethrow(failure: { error: unknown } | null): void {
  if (failure !== null) throw failure.error
}

/** Signals that others than ourselves and the limits end processes with. */
const foreignSignals: ReadonlySet<string> = new Set(['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP'])

function textOf({ isReady, report, text }: ChildAnswer, end: string): DocumentText {
  if (report?.type === 'read') return { text, pages: report.pages }
  if (report?.type === 'unreadable') throw new UnreadableFile(report.code)
  const cause = new Error(`the reading process ended with ${end}`)
  if (!isReady) {
    throw new AppError('internal_error', 'The file cannot be read here at present.', { cause })
  }
  if (foreignSignals.has(end)) {
    throw new AppError('service_unavailable', 'Reading the file was interrupted.', { cause })
  }
  throw new UnreadableFile('extraction_limit', cause)
}
