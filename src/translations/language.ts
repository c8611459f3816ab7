import { AppError } from '#lib/errors.ts'

/** Longer than any language, script, region and variants that have a use. */
const languageCharsMax = 64

/** A BCP 47 tag in its canonical spelling; throws an `AppError` of code `invalid_language`. */
export function readLanguage(tag: string): string {
  const language = canonicalOf(tag)
  if (language !== null) return language
  const sentence = 'A language must be a BCP 47 tag such as "de" or "pt-BR".'
  throw new AppError('unprocessable', sentence, { param: 'language', code: 'invalid_language' })
}

function canonicalOf(tag: string): string | null {
  if (tag.length > languageCharsMax) return null
  try {
    return Intl.getCanonicalLocales(tag)[0] ?? null
  } catch {
    return null
  }
}
