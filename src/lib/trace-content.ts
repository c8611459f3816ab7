import type { ContentRules } from './trace.ts'

/** The attributes that hold contents; `boundedContent` has shortened them. */
export const contentNames: ReadonlySet<string> = new Set([
  'gen_ai.system_instructions',
  'gen_ai.input.messages',
  'gen_ai.output.messages',
  'gen_ai.tool.call.arguments',
  'gen_ai.tool.call.result',
])

/** Bytes of media in a text are of no use in a trace. */
const dataUrl = /data:[\w.+-]+\/[\w.+-]+;base64,[A-Za-z0-9+/=]{64,}/g

/** The text without what must not be recorded, and shortened. */
export function boundedContent(text: string, { charsMax, redact }: ContentRules): string {
  // A secret at the cut would not be recognised, so more than is kept is examined.
  const examined = redact(text.slice(0, charsMax * 2).replace(dataUrl, '[media]'))
  return examined.length <= charsMax ? examined : `${examined.slice(0, charsMax - 1)}…`
}

type Part = { readonly type: string; readonly [field: string]: unknown }
export type ContentMessage = { readonly role: string; readonly parts: readonly Part[] }

/**
 * Messages as JSON, in the form of the semantic conventions. Texts share the bound; the newest messages
 * are kept, because each request repeats the older ones.
 */
export function renderMessages(messages: readonly ContentMessage[], rules: ContentRules): string {
  const kept: ContentMessage[] = []
  let charsLeft = rules.charsMax
  for (const { role, parts } of messages.toReversed()) {
    if (charsLeft <= 0) break
    const bounded = parts.map((part): Part => {
      const text = boundedContent(String(part['content'] ?? ''), {
        ...rules,
        charsMax: Math.max(1, charsLeft),
      })
      charsLeft -= text.length
      return { ...part, content: text }
    })
    kept.unshift({ role, parts: bounded })
  }
  return JSON.stringify(kept)
}
