import { AppError } from '#lib/errors.ts'
import type { Encoding } from '#speech/decoders/decoder.ts'
import { sniff, sniffFrames } from '#speech/decoders/sniff.ts'

const taken = 'Send WAV, MP3, or Opus in Ogg or WebM.'

/**
 * How a file is encoded, by its first bytes. What it is called counts for MP3 alone, whose streams
 * may begin with anything. Throws `invalid_request` for what is not taken.
 */
export function encodingOfFile(head: Uint8Array, filename: string | null): Encoding {
  const found = sniff(head) ?? sniffFrames(head)
  if (found?.encoding) return found.encoding
  if (found === null && /\.(mp3|mpga|mpeg)$/i.test(filename ?? '')) return 'mp3'
  const what = found === null ? 'cannot be told by its first bytes' : `is ${found.name}`
  throw new AppError('invalid_request', `The format of the file ${what}. ${taken}`, {
    code: 'unsupported_file_format',
    param: 'file',
  })
}
