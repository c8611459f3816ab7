import { consoleNamespace, type Overrides } from '../../texts/overrides.ts'
import { shippedTexts } from '../../texts/texts.ts'
import { isRecord } from '../../ui/schema/schema.ts'

/** One text of an interface, in one language. */
export type TextRow = {
  readonly namespace: string
  readonly key: string
  /** In the language, otherwise in English or any other. */
  readonly original: string
  /** Whether the language has no text of its own. */
  readonly isForeign: boolean
  /** Null: the original is shown. */
  readonly override: string | null
}

/** New texts by namespace and key; an empty one removes the change. */
export type TextDraft = Readonly<Record<string, string>>

export type Filter = 'all' | 'changed' | 'missing'

const separator = '\u0000'

export function idOf({ namespace, key }: Pick<TextRow, 'namespace' | 'key'>): string {
  return namespace + separator + key
}

/** The texts of this console and of the portal, with what was changed. */
export async function rowsOf(
  language: string,
  { overrides, catalogue }: { overrides: Overrides; catalogue: Overrides },
): Promise<TextRow[]> {
  const [own, english] = await Promise.all([shippedTexts(language), shippedTexts('en')])
  const changed = overrides[language] ?? {}
  const portal = Object.values(catalogue)
  const texts: Record<string, Record<string, string>> = { [consoleNamespace]: english }
  for (const part of [...portal, catalogue['en'] ?? {}, changed]) {
    for (const [namespace, keys] of Object.entries(part)) {
      texts[namespace] = {
        ...texts[namespace],
        ...(part === changed ? without(keys, texts[namespace]) : keys),
      }
    }
  }
  return Object.entries(texts).flatMap(([namespace, keys]) =>
    Object.entries(keys).map(([key, fallback]): TextRow => {
      const shipped =
        namespace === consoleNamespace ? own[key] : catalogue[language]?.[namespace]?.[key]
      const isUnknown = english[key] === undefined && namespace === consoleNamespace
      return {
        namespace,
        key,
        original: shipped ?? (isUnknown ? '' : fallback),
        isForeign: shipped === undefined,
        override: changed[namespace]?.[key] ?? null,
      }
    }),
  )
}

/** Only keys that are not known yet: they exist in the overrides alone. */
function without(keys: Readonly<Record<string, string>>, known: object = {}) {
  return Object.fromEntries(
    Object.entries(keys).flatMap(([key]) => (Object.hasOwn(known, key) ? [] : [[key, '']])),
  )
}

export function matches(
  row: TextRow,
  { draft, filter, search }: { draft: TextDraft; filter: Filter; search: string },
): boolean {
  const text = draft[idOf(row)] ?? row.override
  if (filter === 'changed' && !text) return false
  if (filter === 'missing' && (!row.isForeign || Boolean(text))) return false
  const all = `${row.namespace}.${row.key} ${row.original} ${text ?? ''}`
  return all.toLowerCase().includes(search)
}

/** Placeholders that a text lacks or that its original does not have. */
export function placeholderFaults(original: string, text: string): readonly string[] {
  if (text === '' || original === '') return []
  const [expected, given] = [placeholdersIn(original), placeholdersIn(text)]
  return [...expected.symmetricDifference(given)]
}

function placeholdersIn(text: string): Set<string> {
  return new Set(
    [...text.matchAll(/\{\{?-? *([\w$.@-]+)[^{}]*\}\}?/g)].map(([, name]) => `{${name}}`),
  )
}

/** What `PATCH /v1/translations/{language}` takes. */
export function patchOf(draft: TextDraft): Record<string, Record<string, string | null>> {
  const patch: Record<string, Record<string, string | null>> = {}
  for (const [id, text] of Object.entries(draft)) {
    const [namespace = '', key = ''] = id.split(separator)
    patch[namespace] = { ...patch[namespace], [key]: text === '' ? null : text }
  }
  return patch
}

/** Reads a file: namespace → key → text, with the language around it or not. Null: neither. */
export function readImport(content: string, language: string): TextDraft | null {
  const file = parse(content)
  if (!isRecord(file)) return null
  const texts = isRecord(file[language]) && isNamespaces(file[language]) ? file[language] : file
  if (!isNamespaces(texts)) return null
  return Object.fromEntries(
    Object.entries(texts).flatMap(([namespace, keys]) =>
      Object.entries(keys).map(([key, text]) => [idOf({ namespace, key }), text]),
    ),
  )
}

function parse(content: string): unknown {
  try {
    return JSON.parse(content)
  } catch {
    return null
  }
}

function isNamespaces(value: unknown): value is Record<string, Record<string, string>> {
  return (
    isRecord(value) &&
    Object.values(value).every(
      (keys) => isRecord(keys) && Object.values(keys).every((text) => typeof text === 'string'),
    )
  )
}

/** The content of a file for translators: changed texts, or all of them. */
export function exportOf(language: string, rows: readonly TextRow[], isComplete: boolean): string {
  const texts: Record<string, Record<string, string>> = {}
  for (const { namespace, key, original, override } of rows) {
    if (override === null && !isComplete) continue
    texts[namespace] = { ...texts[namespace], [key]: override ?? original }
  }
  return JSON.stringify({ [language]: texts }, null, 2)
}
