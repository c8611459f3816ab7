import type { TObject, TSchema } from '@sinclair/typebox'
import { refused, unknownField } from '#lib/unprocessable.ts'
import { isUuid } from '#lib/uuid.ts'
import type { QueryReader } from './endpoint.ts'

/**
 * The query parameters of a request, converted and validated by their schemas. Parameters that the
 * schema does not name are ignored, unless it has `additionalProperties: false`. An array takes
 * every occurrence of its parameter; anything else the last one.
 *
 * Throws `unprocessable` or `unknown_field` (status 422) with the name of the parameter.
 */
export function readQuery(spec: TObject | QueryReader<unknown>, search: string): unknown {
  const params = new URLSearchParams(search)
  if ('read' in spec && typeof spec['read'] === 'function') return spec['read'](params)
  const { properties, required = [], additionalProperties } = spec as TObject
  if (additionalProperties === false) {
    for (const name of params.keys()) {
      if (!(name in properties)) throw unknownField(name)
    }
  }
  const query: Record<string, unknown> = {}
  for (const [name, schema] of Object.entries(properties)) {
    const values = params.getAll(name)
    const last = values.at(-1)
    if (last !== undefined) {
      query[name] =
        schema['type'] === 'array'
          ? values.map((value) => readValue(name, value, schema['items']))
          : readValue(name, last, schema)
    } else if (schema['default'] !== undefined) {
      query[name] = schema['default']
    } else if (required.includes(name)) {
      throw refused(name, `"${name}" is required.`)
    }
  }
  return query
}

function readValue(name: string, text: string, schema: TSchema): unknown {
  const value = convert(text, schema)
  if (value === undefined) throw refused(name, `"${name}" must be ${expectation(schema)}.`)
  return value
}

/** Undefined where the text does not match the schema. */
function convert(text: string, schema: TSchema): unknown {
  if (Array.isArray(schema['anyOf'])) {
    const variants: readonly TSchema[] = schema['anyOf']
    return variants.map((variant) => convert(text, variant)).find((value) => value !== undefined)
  }
  if ('const' in schema) return String(schema['const']) === text ? schema['const'] : undefined
  switch (schema['type']) {
    case 'integer':
    case 'number':
      return convertNumber(text, schema)
    case 'boolean':
      return text === 'true' ? true : text === 'false' ? false : undefined
    default:
      return fitsText(text, schema) ? text : undefined
  }
}

const decimal = /^-?\d{1,15}(\.\d{1,15})?$/
const whole = /^-?\d{1,15}$/

function convertNumber(text: string, schema: TSchema): number | undefined {
  if (!(schema['type'] === 'integer' ? whole : decimal).test(text)) return undefined
  const value = Number(text)
  const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = schema
  return value >= minimum && value <= maximum ? value : undefined
}

/** No database takes a NUL or a lone surrogate. */
function fitsText(text: string, schema: TSchema): boolean {
  const { minLength = 0, maxLength = Number.POSITIVE_INFINITY, pattern, format } = schema
  return (
    text.length >= minLength &&
    text.length <= maxLength &&
    text.isWellFormed() &&
    !text.includes('\0') &&
    (pattern === undefined || new RegExp(pattern, 'u').test(text)) &&
    (format !== 'uuid' || isUuid(text))
  )
}

/** Completes the sentence `"limit" must be …`. */
function expectation(schema: TSchema): string {
  const constants = constantsOf(schema)
  if (constants !== null) return constants.map((value) => `"${value}"`).join(' or ')
  const { minimum, maximum, type, description } = schema
  if (type === 'boolean') return 'true or false'
  if (type === 'integer' || type === 'number') {
    const kind = type === 'integer' ? 'a whole number' : 'a number'
    if (minimum !== undefined && maximum !== undefined)
      return `${kind} from ${minimum} to ${maximum}`
    if (minimum !== undefined) return `${kind} of at least ${minimum}`
    return maximum === undefined ? kind : `${kind} of at most ${maximum}`
  }
  if (typeof description !== 'string') return 'a valid value'
  // The description of such a parameter is a noun phrase: "The id of a user."
  return description.charAt(0).toLowerCase() + description.slice(1).replace(/\.$/, '')
}

function constantsOf(schema: TSchema): readonly unknown[] | null {
  if ('const' in schema) return [schema['const']]
  if (!Array.isArray(schema['anyOf'])) return null
  const constants = schema['anyOf'].map((variant: TSchema) => constantsOf(variant))
  return constants.every((list) => list !== null) ? constants.flat() : null
}
