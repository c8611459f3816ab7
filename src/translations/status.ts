import { type Catalogue, comparePlaceholders } from './catalogue.ts'
import type { TranslationFinding, TranslationStatus } from './schema.ts'
import type { LanguageRow } from './store.ts'
import { countTexts, parseTexts } from './texts.ts'

const findingsMax = 1_000

export function checkStatus(
  rows: readonly LanguageRow[],
  {
    catalogue,
    isSupported,
  }: { catalogue: Catalogue | null; isSupported: (language: string) => boolean },
): TranslationStatus {
  const sorted = rows.toSorted((one, other) => (one.language < other.language ? -1 : 1))
  const findings: TranslationFinding[] = []
  for (const finding of catalogue === null ? [] : findProblems(sorted, catalogue)) {
    findings.push(finding)
    if (findings.length > findingsMax) break
  }
  return {
    catalogue: catalogue !== null,
    languages: sorted.map(({ language, texts, updatedBy, updatedAt }) => ({
      language,
      texts: countTexts(parseTexts(texts)),
      supported: isSupported(language),
      updated_at: updatedAt.toISOString(),
      updated_by: updatedBy,
    })),
    findings: findings.slice(0, findingsMax),
    has_more: findings.length > findingsMax,
  }
}

function* findProblems(
  rows: readonly LanguageRow[],
  catalogue: Catalogue,
): Generator<TranslationFinding, void, void> {
  for (const { language, texts } of rows) {
    for (const [namespace, keys] of parseTexts(texts)) {
      for (const [key, text] of keys) {
        const original = catalogue.find(language, namespace, key)
        if (original === undefined) {
          yield { language, namespace, key, problem: 'key_vanished' }
          continue
        }
        const difference = comparePlaceholders(original, text)
        if (difference === null) continue
        yield { language, namespace, key, problem: 'placeholder_mismatch', ...difference }
      }
    }
  }
}
