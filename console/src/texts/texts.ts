import { signal } from '@preact/signals'
import { en } from './en/en.ts'

export type TextKey = keyof typeof en
/** Every language has every text; a missing key is a type error. */
export type Dictionary = Readonly<Record<TextKey, string>>
/** A language tag: of a language that is shipped, or of one that administrators added. */
export type Language = string

const shippedLanguages: readonly Language[] = ['en', 'de']

const storageKey = 'sluice.language'
const dictionary = signal<Readonly<Record<string, string>>>(en)
export const language = signal<Language>('en')
/** Languages with texts of administrators. */
export const addedLanguages = signal<readonly Language[]>([])

/** The text of a key; `{name}` is replaced by the value of that name. */
export function text(key: TextKey, values: Readonly<Record<string, string | number>> = {}): string {
  const found = dictionary.value[key] ?? en[key]
  return found.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole))
}

/** Whether there is a text of this key. */
export function hasText(key: string): key is TextKey {
  return Object.hasOwn(en, key)
}

export function preferredLanguage(): Language {
  const stored = localStorage.getItem(storageKey)
  if (stored !== null && nameOfLanguage(stored) !== null) return stored
  return navigator.language.startsWith('de') ? 'de' : 'en'
}

/** The languages to choose from. */
export function offeredLanguages(): readonly Language[] {
  return [...new Set([...shippedLanguages, ...addedLanguages.value, language.value])]
}

/** In the language itself: "Deutsch"; null: not a language tag. */
export function nameOfLanguage(tag: string): string | null {
  try {
    return new Intl.DisplayNames([tag], { type: 'language' }).of(tag) ?? tag
  } catch {
    return null
  }
}

/** The texts of a language without changes of administrators; none for languages that are not shipped. */
export async function shippedTexts(of: string): Promise<Readonly<Record<string, string>>> {
  if (of === 'de') return (await import('./de/de.ts')).de
  return of === 'en' ? en : {}
}

/** Shows the page in a language. */
export async function applyLanguage(next: Language): Promise<void> {
  dictionary.value = await shippedTexts(next)
  language.value = next
  document.documentElement.lang = next
}

export async function chooseLanguage(next: Language): Promise<void> {
  localStorage.setItem(storageKey, next)
  await applyLanguage(next)
}

/** Lays texts that administrators changed over our own. */
export function overrideTexts(changed: Readonly<Record<string, string>>): void {
  dictionary.value = { ...dictionary.value, ...changed }
}

/** Formats in the language of the page. */
export const format = {
  number: (value: number, options: Intl.NumberFormatOptions = {}) =>
    new Intl.NumberFormat(language.value, options).format(value),
  compact: (value: number) =>
    new Intl.NumberFormat(language.value, {
      notation: 'compact',
      maximumFractionDigits: 1,
    }).format(value),
  time: (value: string | number | Date) =>
    new Intl.DateTimeFormat(language.value, { dateStyle: 'medium', timeStyle: 'short' }).format(
      new Date(value),
    ),
  date: (value: string | number | Date) =>
    new Intl.DateTimeFormat(language.value, { dateStyle: 'medium' }).format(new Date(value)),
  bytes(value: number): string {
    const units = ['B', 'KB', 'MB', 'GB', 'TB'] as const
    const step = value < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(value) / 3))
    const digits = step === 0 ? 0 : 1
    const scaled = format.number(value / 1000 ** step, { maximumFractionDigits: digits })
    return `${scaled} ${units[step]}`
  },
  ms: (value: number) =>
    value < 1000
      ? `${format.number(value, { maximumFractionDigits: 0 })} ms`
      : `${format.number(value / 1000, { maximumFractionDigits: 2 })} s`,
}
