import type { PortalTexts } from './catalogue.ts'
import { compareMarks, type Difference } from './placeholders.ts'
import type { LanguageRow } from './store.ts'
import { countTexts, parseTexts } from './texts.ts'

/** What an administrator should look at, for instance after the portal was renewed. */
export type TranslationStatus = {
  /** Without the portal's own texts there is nothing to hold others against. */
  readonly hasCatalogue: boolean
  readonly languages: readonly LanguageStatus[]
  readonly findings: readonly Finding[]
  /** Whether there are more than are listed. */
  readonly hasMore: boolean
}

type LanguageStatus = Pick<LanguageRow, 'language' | 'updatedBy' | 'updatedAt'> & {
  readonly texts: number
  /** Whether it may still be changed. */
  readonly isSupported: boolean
}

/** `key_vanished`: the portal has no such text any more, so this one is never shown. */
type Finding = {
  readonly language: string
  readonly namespace: string
  readonly key: string
} & (
  | { readonly problem: 'key_vanished' }
  | ({ readonly problem: 'placeholder_mismatch' } & Difference)
)

const findingsMax = 1_000

export function describeStatus(
  rows: readonly LanguageRow[],
  {
    catalogue,
    isSupported,
  }: { catalogue: PortalTexts | null; isSupported: (language: string) => boolean },
): TranslationStatus {
  const sorted = rows.toSorted((one, other) => (one.language < other.language ? -1 : 1))
  const findings: Finding[] = []
  for (const finding of catalogue === null ? [] : findProblems(sorted, catalogue)) {
    findings.push(finding)
    if (findings.length > findingsMax) break
  }
  return {
    hasCatalogue: catalogue !== null,
    languages: sorted.map(({ language, texts, updatedBy, updatedAt }) => ({
      language,
      updatedBy,
      updatedAt,
      texts: countTexts(parseTexts(texts)),
      isSupported: isSupported(language),
    })),
    findings: findings.slice(0, findingsMax),
    hasMore: findings.length > findingsMax,
  }
}

function* findProblems(
  rows: readonly LanguageRow[],
  catalogue: PortalTexts,
): Generator<Finding, void, void> {
  for (const { language, texts } of rows) {
    for (const [namespace, keys] of parseTexts(texts)) {
      for (const [key, text] of keys) {
        const place = { language, namespace, key }
        const own = catalogue.find(language, namespace, key)
        if (own === undefined) {
          yield { ...place, problem: 'key_vanished' }
          continue
        }
        const difference = compareMarks(own, text)
        if (difference !== null) yield { ...place, problem: 'placeholder_mismatch', ...difference }
      }
    }
  }
}
