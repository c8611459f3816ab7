import { asRecord, isRecord, type JsonObject } from './json.ts'

/**
 * A deterministic value that a JSON Schema accepts. Covers the keywords of tools and output formats:
 * objects, lists, numbers with bounds, strings with a length, format or simple pattern, enums, local
 * references, unions. Unbounded recursion ends in null.
 */
export function sampleFromSchema(schema: JsonObject): unknown {
  return sample(schema, { root: schema, depth: 0, budget: { values: valuesMax } })
}

type SampleContext = { root: JsonObject; depth: number; budget: { values: number } }

/** Ends recursive schemas. */
const depthMax = 16
/** A short schema can require more values than memory holds; the rest is null. */
const valuesMax = 5_000

function sample(schema: unknown, context: SampleContext): unknown {
  if (!isRecord(schema) || context.depth > depthMax || context.budget.values-- <= 0) return null
  const inner = { ...context, depth: context.depth + 1 }
  const { $ref: reference, allOf } = schema
  if (typeof reference === 'string') return sample(resolve(context.root, reference), inner)
  if ('const' in schema) return schema['const']
  if (Array.isArray(schema['enum'])) return schema['enum'][0]
  if (Array.isArray(allOf)) return sample(mergeAll(schema, allOf, context.root), inner)
  const union = schema['anyOf'] ?? schema['oneOf']
  if (Array.isArray(union)) return sample(pickBranch(schema, union), inner)
  switch (typeOf(schema)) {
    case 'object':
      return sampleObject(schema, inner)
    case 'array':
      return sampleArray(schema, inner)
    case 'string':
      return sampleString(schema)
    case 'integer':
      return sampleNumber(schema, 1)
    case 'number':
      return sampleNumber(schema, 0)
    case 'boolean':
      return true
    default:
      return null
  }
}

function resolve(root: JsonObject, reference: string): unknown {
  let found: unknown = root
  for (const step of reference.replace(/^#\/?/, '').split('/')) {
    if (step === '') continue
    const name = decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~')
    found = isRecord(found) ? found[name] : undefined
  }
  return found
}

/** Merges schemas: properties and required names accumulate; otherwise the last one wins. */
function mergeAll(schema: JsonObject, parts: readonly unknown[], root: JsonObject): JsonObject {
  const { allOf: _, ...own } = schema
  const merged: JsonObject = {}
  for (const part of [...parts, own]) {
    const reference = isRecord(part) ? part['$ref'] : undefined
    const plain = typeof reference === 'string' ? resolve(root, reference) : part
    if (!isRecord(plain)) continue
    const properties = { ...asRecord(merged['properties']), ...asRecord(plain['properties']) }
    const required = [...asList(merged['required']), ...asList(plain['required'])]
    Object.assign(merged, plain, { properties, required })
  }
  return merged
}

/** The first branch that is not null, merged with the keywords beside the union. */
function pickBranch(schema: JsonObject, union: readonly unknown[]): unknown {
  const branch = union.find((each) => isRecord(each) && each['type'] !== 'null') ?? union[0]
  if (!isRecord(branch)) return branch
  const { anyOf: _, oneOf: __, ...rest } = schema
  return { ...rest, ...branch }
}

function typeOf(schema: JsonObject): unknown {
  const { type } = schema
  if (Array.isArray(type)) return type.find((each) => each !== 'null') ?? 'null'
  if (type !== undefined) return type
  if ('properties' in schema || 'required' in schema) return 'object'
  if ('items' in schema || 'prefixItems' in schema) return 'array'
  if ('minimum' in schema || 'maximum' in schema) return 'number'
  return 'string'
}

/** The required properties; all properties if none is required. */
function sampleObject(schema: JsonObject, context: SampleContext): JsonObject {
  const properties = asRecord(schema['properties'])
  const required = asList(schema['required']).filter((name) => typeof name === 'string')
  const value: JsonObject = {}
  for (const name of required.length > 0 ? required : Object.keys(properties)) {
    value[name] = sample(properties[name] ?? schema['additionalProperties'] ?? {}, context)
  }
  const missing = asNumber(schema['minProperties'], 0) - Object.keys(value).length
  const others = Object.keys(properties).filter((name) => !(name in value))
  for (const name of others.slice(0, Math.max(missing, 0))) {
    value[name] = sample(properties[name], context)
  }
  return value
}

function sampleArray(schema: JsonObject, context: SampleContext): unknown[] {
  // A tuple; older drafts use a list in `items`.
  const leading = asList(schema['prefixItems'] ?? schema['items'])
  const wanted = Math.max(asNumber(schema['minItems'], 1), leading.length)
  const count = Math.min(wanted, asNumber(schema['maxItems'], wanted), itemsMax)
  const items = Array.from({ length: count }, (_, index) =>
    sample(leading[index] ?? schema['items'] ?? {}, context),
  )
  return schema['uniqueItems'] === true ? items.map(makeDistinct) : items
}

/** A schema may require an excessive number of items. */
const itemsMax = 100

function makeDistinct(item: unknown, index: number): unknown {
  if (typeof item === 'number') return item + index
  return typeof item === 'string' && index > 0 ? `${item}${index}` : item
}

function sampleNumber(schema: JsonObject, defaultStep: number): number {
  const step = asNumber(schema['multipleOf'], defaultStep)
  const lowest = asNumber(schema['minimum'], Number.NEGATIVE_INFINITY)
  const above = asNumber(schema['exclusiveMinimum'], Number.NEGATIVE_INFINITY)
  const highest = asNumber(schema['maximum'], Number.POSITIVE_INFINITY)
  const below = asNumber(schema['exclusiveMaximum'], Number.POSITIVE_INFINITY)
  const fits = (value: number) =>
    value >= lowest && value > above && value <= highest && value < below
  const round = (value: number) => (step === 0 ? value : Math.ceil(value / step) * step)
  const low = Math.max(lowest, above)
  const high = Math.min(highest, below)
  const candidates = [1, low, low + (step === 0 ? 1 : step), (low + high) / 2, high, high - step]
  return candidates.filter(Number.isFinite).map(round).find(fits) ?? 0
}

const formats: Readonly<Record<string, string>> = {
  'date-time': '2026-01-01T00:00:00Z',
  date: '2026-01-01',
  time: '00:00:00Z',
  duration: 'PT1S',
  email: 'demo@example.com',
  hostname: 'example.com',
  ipv4: '127.0.0.1',
  ipv6: '::1',
  uri: 'https://example.com/',
  uuid: '00000000-0000-4000-8000-000000000000',
}

/** Candidates for a pattern. */
const patternCandidates = [
  'demo',
  'Demo',
  'DEMO',
  'a',
  'A',
  'ab',
  'AB',
  'ABC',
  'a_1',
  'a-1',
  '1',
  '10',
]

function sampleString(schema: JsonObject): string {
  const { format, pattern } = schema
  const least = asNumber(schema['minLength'], 0)
  const most = asNumber(schema['maxLength'], Number.POSITIVE_INFINITY)
  const fit = (text: string) => text.padEnd(Math.min(least, textCharsMax), 'o').slice(0, most)
  if (typeof format === 'string' && formats[format] !== undefined) return formats[format]
  const first = fit('demo')
  if (typeof pattern !== 'string') return first
  const texts = [...patternCandidates, ...Object.values(formats), '0'.repeat(least)].map(fit)
  return texts.find((text) => isMatch(pattern, text)) ?? first
}

/** A schema may require an excessive length. */
const textCharsMax = 1_000

/** Patterns come from clients; those that may backtrack excessively are skipped. */
const patternTextCharsMax = 64
const quantifiersMax = 4

function isSafePattern(pattern: string): boolean {
  const quantifiers = pattern.match(/[*+?{]/g)?.length ?? 0
  return quantifiers <= quantifiersMax && !/\)[*+?{]/.test(pattern)
}

function isMatch(pattern: string, text: string): boolean {
  if (text.length > patternTextCharsMax || !isSafePattern(pattern)) return false
  try {
    return new RegExp(pattern, 'u').test(text)
  } catch {
    return false
  }
}

function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function asNumber(value: unknown, otherwise: number): number {
  return typeof value === 'number' ? value : otherwise
}
