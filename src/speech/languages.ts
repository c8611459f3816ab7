/** The languages of the interface, as ISO 639-1 codes; an engine serves some of them. */
export const languages = ['cs', 'de', 'el', 'en', 'fr', 'sk'] as const

export type Language = (typeof languages)[number]

export function isLanguage(code: string): code is Language {
  return languages.some((language) => language === code)
}
