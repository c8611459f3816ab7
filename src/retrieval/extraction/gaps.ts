import { isRecord } from '#lib/json.ts'

/** What the extracted text of a file lacks, or what is uncertain in it. */

const messages = {
  pages_without_text: (count: number) => `${number(count, 'page has', 'pages have')} no text`,
  pages_recognized: (count: number) =>
    `the text of ${number(count, 'page', 'pages')} was recognized from an image and may have errors`,
  images_skipped: (count: number) => `${number(count, 'image was', 'images were')} not read`,
  parts_skipped: (count: number) => `${number(count, 'part was', 'parts were')} not read`,
  rows_skipped: (count: number) =>
    `${number(count, 'row', 'rows')} after the limit of all sheets ${count === 1 ? 'was' : 'were'} not read`,
  undecodable: (count: number) =>
    `${number(count, 'character', 'characters')} could not be decoded`,
}

type GapCode = keyof typeof messages

export type Gap = {
  readonly code: GapCode
  readonly count: number
  /** Their page numbers or names, the first ones. */
  readonly places: readonly (number | string)[]
}

/** A gap as callers of the API read it. */
export type TextWarning = { readonly code: string; readonly message: string }

/** More of them make a message no clearer. */
const placesMax = 20
const placeCharsMax = 100

export type Gaps = ReturnType<typeof createGaps>

/** Counts what the readers of a file leave out. */
export function createGaps() {
  const found = new Map<GapCode, { count: number; places: (number | string)[] }>()
  return {
    /** Without effect for a count of 0. */
    add(code: GapCode, { count = 1, place }: { count?: number; place?: number | string } = {}) {
      if (count === 0) return
      const gap = found.get(code) ?? { count: 0, places: [] }
      gap.count += count
      if (place !== undefined && gap.places.length < placesMax) gap.places.push(place)
      found.set(code, gap)
    },
    list: (): Gap[] => Array.from(found, ([code, gap]) => ({ code, ...gap })),
  }
}

export function warningOf({ code, count, places }: Gap): TextWarning {
  const more = places.length === placesMax && count > placesMax ? ' …' : ''
  const named = places.length === 0 ? '' : ` (${places.join(', ')}${more})`
  const message = messages[code](count)
  return { code, message: `${message.charAt(0).toUpperCase()}${message.slice(1)}${named}.` }
}

/** Validates the report of an untrusted process. */
export function isGap(value: unknown): value is Gap {
  if (!isRecord(value)) return false
  const { code, count, places } = value
  if (typeof code !== 'string' || !Object.hasOwn(messages, code)) return false
  if (!Number.isSafeInteger(count) || Number(count) < 1) return false
  return Array.isArray(places) && places.length <= placesMax && places.every(isPlace)
}

function isPlace(place: unknown): boolean {
  return typeof place === 'string' ? place.length <= placeCharsMax : Number.isSafeInteger(place)
}

function number(count: number, one: string, many: string): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : many}`
}
