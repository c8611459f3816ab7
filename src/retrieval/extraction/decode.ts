import chardet from 'chardet'
import { UnreadableFile } from './unreadable.ts'

/** Share of control and replacement characters above which the file is not text. */
const invalidShareMax = 0.1
/** Where HTML and XML files declare their encoding. */
const declarationBytesMax = 1_024

const byteOrderMarks: readonly (readonly [encoding: Bun.Encoding, ...mark: number[]])[] = [
  ['utf-8', 0xef, 0xbb, 0xbf],
  ['utf-16le', 0xff, 0xfe],
  ['utf-16be', 0xfe, 0xff],
]

/** Statistics of more bytes decide the same. */
const detectionBytesMax = 262_144
/** A text with so many other characters per invalid byte is damaged UTF-8, not another encoding. */
const validPerInvalid = 10

/**
 * Decodes UTF-8, UTF-16 with a byte order mark, the declared encoding of HTML and XML, or a legacy
 * encoding that the letters suggest. Invalid bytes become U+FFFD; a file with more than a tenth of them
 * is refused.
 */
export function decodeText(bytes: Uint8Array): string {
  const marked = byteOrderMarks.find(([, ...mark]) =>
    mark.every((byte, index) => bytes[index] === byte),
  )
  if (marked !== undefined) return decodeAs(marked[0], bytes)
  try {
    return requireText(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (error) {
    if (error instanceof UnreadableFile) throw error
    return decodeAs(declaredEncoding(bytes) ?? detectedEncoding(bytes) ?? 'utf-8', bytes)
  }
}

/** Null for binary content and for UTF-8 with single errors. */
function detectedEncoding(bytes: Uint8Array): Bun.Encoding | null {
  const sample = bytes.subarray(0, detectionBytesMax)
  if (sample.includes(0)) return null
  const asUtf8 = new TextDecoder().decode(sample)
  const invalid = asUtf8.match(/\ufffd/g)?.length ?? 0
  const valid = asUtf8.match(/[^\0-\x7f\ufffd]/g)?.length ?? 0
  if (valid > invalid * validPerInvalid) return null
  const label = chardet.detect(sample)
  if (label === null || !isEncoding(label)) return null
  const text = new TextDecoder(label).decode(sample)
  const written = text.match(/[^\0-\x7f]/g)?.length ?? 0
  const letters = text.match(/[^\0-\x7f\P{L}]|[^\0-\x7f\P{P}]|[\p{Sc}\p{Nd}\u00a0°]/gu)?.length ?? 0
  return letters * 2 >= written ? label : null
}

function decodeAs(encoding: Bun.Encoding, bytes: Uint8Array): string {
  return requireText(new TextDecoder(encoding).decode(bytes))
}

function declaredEncoding(bytes: Uint8Array): Bun.Encoding | null {
  const head = new TextDecoder('latin1').decode(bytes.subarray(0, declarationBytesMax))
  const label = /<(?:\?xml|meta)[^>]{1,200}?(?:encoding|charset)\s*=\s*["']?([\w-]{1,40})/i.exec(
    head,
  )?.[1]
  return label !== undefined && isEncoding(label) ? label : null
}

export function isEncoding(label: string): label is Bun.Encoding {
  try {
    return Reflect.construct(TextDecoder, [label]) instanceof TextDecoder
  } catch {
    return false
  }
}

function requireText(text: string): string {
  let invalid = 0
  for (let index = 0; index < text.length; index++) {
    if (isInvalid(text.charCodeAt(index))) invalid++
  }
  if (invalid > text.length * invalidShareMax) throw new UnreadableFile('unsupported_file')
  return text
}

function isInvalid(code: number): boolean {
  return code === 0xfffd || (code < 0x20 && code !== 0x09 && code !== 0x0a && code !== 0x0d)
}
