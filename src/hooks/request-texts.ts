import type { ContentPart, GenerationRequest, RequestItem } from '#inference/request.ts'
import { isRecord, parseJson } from '#lib/json.ts'
import type { HookText, HookTextKind } from './hook.ts'

type MapText = (kind: HookTextKind, text: string) => string

/** The texts of a request, in its order. */
export function readRequest(request: GenerationRequest): HookText[] {
  const texts: HookText[] = []
  mapRequest(request, (kind, text) => {
    texts.push({ kind, text })
    return text
  })
  return [...texts, ...hiddenTexts(request, new Set(texts.map(({ text }) => text)))]
}

/** The request with these texts instead. An upstream of its protocol does not get the original either. */
export function replaceRequest(
  request: GenerationRequest,
  texts: readonly string[],
): GenerationRequest {
  let at = 0
  const { origin: _, ...replaced } = mapRequest(request, (_, text) => texts[at++] ?? text)
  return replaced
}

function mapRequest(request: GenerationRequest, map: MapText): GenerationRequest {
  const { instructions, items, tools } = request
  return {
    ...request,
    instructions: instructions === null ? null : map('instructions', instructions),
    tools: tools.map((tool) =>
      tool.description === null ? tool : { ...tool, description: map('tool', tool.description) },
    ),
    items: items.map((item) => mapItem(item, map)),
  }
}

const kindOfRole = {
  user: 'user',
  assistant: 'assistant',
  system: 'instructions',
  developer: 'instructions',
} as const

function mapItem(item: RequestItem, map: MapText): RequestItem {
  switch (item.type) {
    case 'message':
      return { ...item, parts: mapParts(item.parts, kindOfRole[item.role], map) }
    case 'tool-result':
      return { ...item, parts: mapParts(item.parts, 'tool-result', map) }
    case 'tool-call':
      return { ...item, arguments: map('tool-call', item.arguments) }
    case 'reasoning':
      return {
        ...item,
        summary: item.summary.map((text) => map('reasoning', text)),
        text: item.text === '' ? '' : map('reasoning', item.text),
      }
    case 'native':
      return { ...item, value: mapJson(item.value, (text) => map('native', text)) }
  }
}

function mapParts(parts: readonly ContentPart[], kind: HookTextKind, map: MapText): ContentPart[] {
  return parts.map((part) => ('text' in part ? { ...part, text: map(kind, part.text) } : part))
}

/** Throws if the text in its place is no JSON object. */
export function mapJson<T extends object>(value: T, map: (text: string) => string): T {
  const text = JSON.stringify(value)
  const mapped = map(text)
  if (mapped === text) return value
  const parsed = parseJson(mapped)
  if (!isRecord(parsed)) throw new TypeError('a replaced JSON text is no JSON object')
  return parsed as T
}

/** Fields of content blocks that a model reads. */
const textFields = new Set([
  'content',
  'context',
  'description',
  'query',
  'text',
  'thinking',
  'title',
])

/** Texts of the original body that the request does not have, in blocks that only its protocol knows. */
function hiddenTexts({ origin }: GenerationRequest, known: ReadonlySet<string>): HookText[] {
  if (origin === undefined) return []
  const { messages, system, tools } = origin.body
  const found = new Set<string>()
  const pending: unknown[] = [messages, tools, { system }]
  // Bodies are bounded in depth and size.
  while (pending.length > 0) {
    const value = pending.pop()
    if (Array.isArray(value)) pending.push(...value)
    if (!isRecord(value)) continue
    const isText = value['type'] === 'text'
    for (const [field, inner] of Object.entries(value)) {
      if (typeof inner !== 'string') {
        if (inner !== null && typeof inner === 'object') pending.push(inner)
      } else if (textFields.has(field) || field === 'system' || (field === 'data' && isText)) {
        found.add(inner)
      }
    }
  }
  return [...found].filter((text) => !known.has(text)).map((text) => ({ kind: 'other', text }))
}
