import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from './temporary-folders.ts'

/**
 * Spoken sentences in every encoding of the API, generated with Debian packages on first use and cached
 * in the temporary folder. Tests that need them use `test.skipIf(!speechToolsExist)`.
 */
const tools = ['flite', 'sox', 'opusenc', 'opusdec', 'lame', 'ffmpeg']

export const speechToolsExist = tools.every((tool) => Bun.which(tool) !== null)

/** The texts of the sentences, in a voice that the test recogniser understands. */
export const sentences = {
  fox: 'the quick brown fox jumps over the lazy dog today',
  door: 'go forward ten meters and then turn left at the door',
} as const

export type Sentence = keyof typeof sentences

export type SpeechForm = 'wav' | 'ogg' | 'webm' | 'mp3' | 'pcm_int16' | 'pcm_float32'

/**
 * The sample rate of `pcm_int16`, `pcm_float32` and `wav`; compressed formats are made from 48 kHz.
 */
export const speechRateHz = 16_000

/** Silence around the sentence, without which its first and last words are lost. */
const silenceBeforeS = 0.6
const silenceAfterS = 1.2

const raw = ['-t', 'raw', '-r', String(speechRateHz), '-b', '16', '-c', '1', '-e', 'signed']

/** One sentence in one format, with silence before and after. */
export function speechFile(sentence: Sentence, form: SpeechForm): Uint8Array {
  switch (form) {
    case 'pcm_int16':
      return spoken(sentence)
    case 'pcm_float32':
      return toolOutput(
        ['sox', '-R', ...raw, 'IN', '-t', 'raw', '-e', 'floating-point', '-b', '32', 'OUT'],
        spoken(sentence),
      )
    case 'wav':
      return toolOutput(['sox', '-R', ...raw, 'IN', '-t', 'wav', 'OUT'], spoken(sentence))
    case 'ogg':
      return toolOutput(['opusenc', '--quiet', '--bitrate', '24', 'IN', 'OUT'], wav48(sentence))
    case 'webm':
      return toolOutput(
        [
          ...['ffmpeg', '-v', 'error', '-y', '-i', 'IN', '-c:a', 'libopus', '-b:a', '24k'],
          ...['-f', 'webm', '-live', '1', 'OUT'],
        ],
        wav48(sentence),
      )
    case 'mp3':
      return toolOutput(['lame', '--quiet', '-b', '48', 'IN', 'OUT'], wav48(sentence))
  }
}

const made = new Map<string, Uint8Array>()
const folder = join(cacheFolder, 'sluice-speech-material')

/**
 * Runs a tool that reads `input` from `IN` and writes to `OUT` (placeholders for paths). The result is
 * cached under the hash of command and input.
 */
export function toolOutput(command: readonly string[], input: Uint8Array): Uint8Array {
  const key = new Bun.CryptoHasher('sha256').update(command.join('\0')).update(input).digest('hex')
  const kept = made.get(key)
  if (kept !== undefined) return kept
  const path = join(folder, key)
  if (!existsSync(path)) runTool(command, input, path)
  const output = new Uint8Array(readFileSync(path))
  made.set(key, output)
  return output
}

/** The file is renamed when complete, so that parallel tests can share it. */
function runTool(command: readonly string[], input: Uint8Array, path: string) {
  mkdirSync(folder, { recursive: true })
  const work = mkdtempSync(join(folder, 'work-'))
  try {
    writeFileSync(join(work, 'in'), input)
    const words = command.map((word) =>
      word === 'IN' ? join(work, 'in') : word === 'OUT' ? join(work, 'out') : word,
    )
    const run = Bun.spawnSync(words, { stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' })
    if (!run.success) throw new Error(`${command.join(' ')} failed: ${run.stderr.toString()}`)
    renameSync(join(work, 'out'), path)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

function spoken(sentence: Sentence): Uint8Array {
  const text = new TextEncoder().encode(`${sentences[sentence]}\n`)
  const voice = toolOutput(['flite', '-voice', 'rms', '-f', 'IN', '-o', 'OUT'], text)
  return toolOutput(
    [
      'sox',
      '-R',
      '-t',
      'wav',
      'IN',
      ...raw,
      'OUT',
      'pad',
      String(silenceBeforeS),
      String(silenceAfterS),
    ],
    voice,
  )
}

function wav48(sentence: Sentence): Uint8Array {
  return toolOutput(
    ['sox', '-R', ...raw, 'IN', '-t', 'wav', '-r', '48000', 'OUT'],
    spoken(sentence),
  )
}
