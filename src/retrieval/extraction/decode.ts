import { UnreadableFile } from './unreadable.ts'

/** A text has hardly any of what stands for bytes that are no text. */
const strangeShareMax = 0.1
/** As far as an HTML or XML file may put the name of its encoding. */
const declarationBytesMax = 1_024

const byteOrderMarks: readonly (readonly [encoding: Bun.Encoding, ...mark: number[]])[] = [
  ['utf-8', 0xef, 0xbb, 0xbf],
  ['utf-16le', 0xff, 0xfe],
  ['utf-16be', 0xfe, 0xff],
]

/**
 * The text of a file without formatting: UTF-8, UTF-16 with a byte order mark, or what HTML and XML
 * declare. Where some bytes are not UTF-8, the rest is taken all the same and U+FFFD stands for
 * them; where they are more than a tenth, it is another encoding or no text, and is refused.
 */
export function decodeText(bytes: Uint8Array): string {
  const marked = byteOrderMarks.find(([, ...mark]) => mark.every((byte, at) => bytes[at] === byte))
  if (marked !== undefined) return decodeAs(marked[0], bytes)
  try {
    return requireText(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (error) {
    if (error instanceof UnreadableFile) throw error
    return decodeAs(declaredEncoding(bytes) ?? 'utf-8', bytes)
  }
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

function isEncoding(label: string): label is Bun.Encoding {
  try {
    return Reflect.construct(TextDecoder, [label]) instanceof TextDecoder
  } catch {
    return false
  }
}

function requireText(text: string): string {
  let strange = 0
  for (let at = 0; at < text.length; at++) {
    if (isStrange(text.charCodeAt(at))) strange++
  }
  if (strange > text.length * strangeShareMax) throw new UnreadableFile('unsupported_file')
  return text
}

function isStrange(code: number): boolean {
  return code === 0xfffd || (code < 0x20 && code !== 0x09 && code !== 0x0a && code !== 0x0d)
}
