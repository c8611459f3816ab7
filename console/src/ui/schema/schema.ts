import { format, text } from '../../texts/texts.ts'

/** The part of JSON Schema that forms know; anything else is edited as JSON. */
export type Schema = {
  readonly title?: string
  readonly description?: string
  readonly type?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly Schema[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly patternProperties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: boolean | Schema
  readonly required?: readonly string[]
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly maxProperties?: number
  readonly pattern?: string
  readonly writeOnly?: boolean
  readonly 'x-unit'?: string
  readonly 'x-reference'?: string
}

/** How a form shows a schema. */
export type Shape =
  | { readonly kind: 'boolean' | 'number' | 'text' | 'secret' | 'json' }
  | { readonly kind: 'choice'; readonly values: readonly unknown[] }
  | { readonly kind: 'list'; readonly items: Schema }
  | { readonly kind: 'object'; readonly fields: readonly (readonly [string, Schema])[] }
  | { readonly kind: 'map'; readonly entries: Schema }

/** A fault of a value: where, and what to do. */
export type SchemaFault = { readonly path: string; readonly message: string }

const isNull = ({ type, const: value }: Schema) => type === 'null' || value === null

/** Without the alternative null, and whether there was one. */
export function withoutNull(schema: Schema): { schema: Schema; isNullable: boolean } {
  const { anyOf, ...rest } = schema
  const others = anyOf?.filter((one) => !isNull(one))
  if (anyOf === undefined || others === undefined || others.length === anyOf.length) {
    return { schema, isNullable: false }
  }
  const [only] = others
  const inner = others.length === 1 && only !== undefined ? only : { anyOf: others }
  return { schema: { ...rest, ...inner }, isNullable: true }
}

export function shapeOf(schema: Schema): Shape {
  const { type, anyOf, items, properties, patternProperties, additionalProperties } = schema
  const values =
    schema.enum ??
    (anyOf?.every((one) => one.const !== undefined) ? anyOf.map((one) => one.const) : undefined)
  if (values !== undefined) return { kind: 'choice', values }
  if (type === 'boolean') return { kind: 'boolean' }
  if (type === 'integer' || type === 'number') return { kind: 'number' }
  if (type === 'string') return { kind: schema.writeOnly === true ? 'secret' : 'text' }
  if (type === 'array' && items !== undefined) return { kind: 'list', items }
  if (type !== 'object') return { kind: 'json' }
  const entries = Object.values(patternProperties ?? {})[0] ?? additionalProperties
  if (properties !== undefined) return { kind: 'object', fields: Object.entries(properties) }
  return typeof entries === 'object' ? { kind: 'map', entries } : { kind: 'json' }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The value of a new entry of a list or map. */
export function emptyValue(schema: Schema): unknown {
  const shape = shapeOf(withoutNull(schema).schema)
  if (shape.kind === 'boolean') return false
  if (shape.kind === 'text' || shape.kind === 'secret') return ''
  if (shape.kind === 'choice') return shape.values[0]
  if (shape.kind === 'list') return []
  if (shape.kind === 'map') return {}
  if (shape.kind === 'number') return schema.minimum ?? 0
  if (shape.kind !== 'object') return null
  const needed = shape.fields.filter(([name]) => schema.required?.includes(name))
  return Object.fromEntries(needed.map(([name, field]) => [name, emptyValue(field)]))
}

/** Everything that the API would refuse because of the schema. */
export function faultsOf(given: Schema, value: unknown, path = ''): SchemaFault[] {
  const { schema, isNullable } = withoutNull(given)
  if (value === null && isNullable) return []
  const shape = shapeOf(schema)
  const fault = (message: string) => [{ path, message }]
  const below = (name: string | number) => (path === '' ? `${name}` : `${path}.${name}`)
  switch (shape.kind) {
    case 'number':
      return numberFault(schema, value).flatMap(fault)
    case 'text':
    case 'secret':
      return textFault(schema, value).flatMap(fault)
    case 'list': {
      const items = Array.isArray(value) ? value : []
      if (items.length < (schema.minItems ?? 0)) {
        return fault(text('schema.items_min', { count: schema.minItems ?? 0 }))
      }
      if (items.length > (schema.maxItems ?? Number.POSITIVE_INFINITY)) {
        return fault(text('schema.items_max', { count: schema.maxItems ?? 0 }))
      }
      return items.flatMap((item, at) => faultsOf(shape.items, item, below(at)))
    }
    case 'map':
      return Object.entries(isRecord(value) ? value : {}).flatMap(([name, item]) =>
        name.trim() === ''
          ? fault(text('schema.name_missing'))
          : faultsOf(shape.entries, item, below(name)),
      )
    case 'object': {
      const fields = isRecord(value) ? value : {}
      return shape.fields.flatMap(([name, field]) => {
        const item = fields[name]
        const isNeeded = schema.required?.includes(name) === true
        if (item === undefined && !isNeeded) return []
        return faultsOf(field, item, below(name))
      })
    }
    case 'json':
      return typeof value === 'string' && value.startsWith(unparsed)
        ? fault(text('schema.json_invalid'))
        : []
    default:
      return []
  }
}

/** Marks text in a JSON editor that is not JSON yet. */
export const unparsed = '\u0000'

function numberFault({ type, minimum, maximum, ...rest }: Schema, value: unknown): string[] {
  if (typeof value !== 'number' || !Number.isFinite(value)) return [text('schema.number')]
  if (type === 'integer' && !Number.isInteger(value)) return [text('schema.whole')]
  const show = (bound: number) => showNumber(bound, rest['x-unit'])
  if (minimum !== undefined && value < minimum) {
    return [text('schema.at_least', { bound: show(minimum) })]
  }
  if (maximum !== undefined && value > maximum) {
    return [text('schema.at_most', { bound: show(maximum) })]
  }
  return []
}

function textFault({ minLength = 0, maxLength, pattern }: Schema, value: unknown): string[] {
  const given = typeof value === 'string' ? value : ''
  if (given.length < minLength) {
    return [minLength === 1 ? text('schema.needed') : text('schema.longer', { count: minLength })]
  }
  if (maxLength !== undefined && given.length > maxLength) {
    return [text('schema.shorter', { count: maxLength })]
  }
  return pattern !== undefined && !new RegExp(pattern).test(given)
    ? [text('schema.pattern', { pattern })]
    : []
}

/** Units of numbers, the largest first. */
export const unitsOf: Readonly<Record<string, readonly (readonly [string, number])[]>> = {
  bytes: [
    ['TiB', 1024 ** 4],
    ['TB', 1e12],
    ['GiB', 1024 ** 3],
    ['GB', 1e9],
    ['MiB', 1024 ** 2],
    ['MB', 1e6],
    ['KiB', 1024],
    ['KB', 1e3],
    ['B', 1],
  ],
  seconds: [
    ['days', 86_400],
    ['hours', 3_600],
    ['minutes', 60],
    ['seconds', 1],
  ],
}

/** The largest unit that has the value as a whole number. */
export function unitFor(value: number, units: readonly (readonly [string, number])[]): number {
  const found = value === 0 ? undefined : units.find(([, factor]) => value % factor === 0)
  return found?.[1] ?? 1
}

export function unitName(name: string): string {
  switch (name) {
    case 'days':
    case 'hours':
    case 'minutes':
    case 'seconds':
      return text(`unit.${name}`)
    default:
      return name
  }
}

function showNumber(value: number, unit: string | undefined): string {
  const units = unit === undefined ? undefined : unitsOf[unit]
  if (units === undefined) return format.number(value, { maximumFractionDigits: 6 })
  const factor = unitFor(value, units)
  const [name = ''] = units.find(([, one]) => one === factor) ?? []
  return `${format.number(value / factor)} ${unitName(name)}`
}

/** A value in a few words. */
export function showValue(value: unknown, schema?: Schema): string {
  if (value === null || value === undefined) return text('schema.not_set')
  if (typeof value === 'boolean') return text(value ? 'schema.yes' : 'schema.no')
  if (typeof value === 'number') return showNumber(value, schema?.['x-unit'])
  if (typeof value === 'string') return value
  const isEmpty = Array.isArray(value) ? value.length === 0 : Object.keys(value).length === 0
  return isEmpty ? text('schema.empty') : JSON.stringify(value)
}

/** The merge patch from one value to another; undefined: no difference. */
export function patchBetween(before: unknown, after: unknown): unknown {
  if (!isRecord(before) || !isRecord(after)) {
    return JSON.stringify(before) === JSON.stringify(after) ? undefined : (after ?? null)
  }
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  const changes = names.flatMap((name) => {
    const change =
      after[name] === undefined
        ? before[name] === undefined
          ? undefined
          : null
        : patchBetween(before[name], after[name])
    return change === undefined ? [] : [[name, change] as const]
  })
  return changes.length === 0 ? undefined : Object.fromEntries(changes)
}

export type Difference = {
  readonly path: string
  readonly before: unknown
  readonly after: unknown
}

/** The leaves that differ. */
export function differencesOf(before: unknown, after: unknown, path = ''): Difference[] {
  const [left, right] = [before ?? undefined, after ?? undefined]
  const isNested =
    (isRecord(left) || left === undefined) && (isRecord(right) || right === undefined)
  if (!isNested || (left === undefined && right === undefined)) {
    return JSON.stringify(left) === JSON.stringify(right) ? [] : [{ path, before, after }]
  }
  const [one, other] = [left ?? {}, right ?? {}] as Record<string, unknown>[]
  const names = [...new Set([...Object.keys(one ?? {}), ...Object.keys(other ?? {})])]
  const within = names.flatMap((name) =>
    differencesOf(one?.[name], other?.[name], path === '' ? name : `${path}.${name}`),
  )
  return within.length > 0 || (left === undefined) === (right === undefined)
    ? within
    : [{ path, before, after }]
}

/** `requests_per_minute` as "Requests per minute". */
export function humanize(name: string): string {
  const words = name.replaceAll('_', ' ')
  return words.slice(0, 1).toUpperCase() + words.slice(1)
}
