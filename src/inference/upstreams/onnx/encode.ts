import type { Manifest } from './manifest.ts'
import type { Urgency } from './run-queue.ts'

/** One run takes about a third of a second, which a query may have to wait. */
const runCharsMax = 4_096
const runTextsMax = 8

/** Some clients and configurations add the prefix themselves. */
export function addPrefix(
  text: string,
  { purpose, title }: { purpose: Urgency; title?: string | undefined },
  manifest: Manifest,
): string {
  const prefix = purpose === 'query' ? manifest.queryPrefix : manifest.passagePrefix
  if (prefix !== '' && text.startsWith(prefix)) return text
  return prefix + (title === undefined ? text : `${title}: ${text}`)
}

/** Parts of a few short texts, or of one long text. */
export function splitTexts(texts: readonly string[]): readonly (readonly string[])[] {
  const parts: string[][] = []
  let chars = 0
  for (const text of texts) {
    const part = parts.at(-1)
    chars += text.length
    if (part === undefined || part.length >= runTextsMax || chars > runCharsMax) {
      parts.push([text])
      chars = text.length
    } else part.push(text)
  }
  return parts
}
