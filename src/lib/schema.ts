import type { Static, TSchema } from '@sinclair/typebox'
import {
  type TypeCheck,
  TypeCompiler,
  type ValueError,
  ValueErrorType,
} from '@sinclair/typebox/compiler'
import { isRecord } from './json.ts'

export type SchemaFault = {
  /** The location in the value, such as `filters[1].value`; empty for the value itself. */
  path: string
  /** A sentence with the location and the expected value. */
  message: string
  /** Whether the schema does not define the field. */
  unknownField: boolean
}

export type Checker<T extends TSchema> = {
  check(value: unknown): value is Static<T>
  /** The fault to report; null for a valid value. */
  firstError(value: unknown): SchemaFault | null
}

/** Unknown fields are reported first: they often cause the other faults. */
const faultsReadMax = 20

/**
 * Validates values against a schema without converting them. The schema is compiled at the first
 * value: compiling all of them at start-up would take 10 % longer.
 */
export function compileChecker<T extends TSchema>(schema: T): Checker<T> {
  let compiled: TypeCheck<T> | undefined
  const checker = () => {
    compiled ??= TypeCompiler.Compile(schema)
    return compiled
  }
  return {
    check: (value): value is Static<T> => checker().Check(value),
    firstError(value) {
      if (checker().Check(value)) return null
      const faults: SchemaFault[] = []
      for (const error of checker().Errors(value)) {
        const fault = describeFault(error)
        if (fault.unknownField) return fault
        faults.push(fault)
        if (faults.length === faultsReadMax) break
      }
      return faults[0] ?? null
    },
  }
}

function describeFault(error: ValueError): SchemaFault {
  const inner = faultOfVariant(error)
  if (inner !== undefined) return describeFault(inner)
  const path = readablePath(error.path)
  return {
    path,
    message: `${path === '' ? 'The value' : `"${shortenPath(path)}"`} ${describeError(error)}.`,
    unknownField: error.type === ValueErrorType.ObjectAdditionalProperties,
  }
}

/**
 * The fault inside the variant of a union that was meant: of objects with a `type`, the one with the
 * value's type; of a schema or null, the schema, unless the value is of another type.
 */
function faultOfVariant(error: ValueError): ValueError | undefined {
  if (error.type !== ValueErrorType.Union) return undefined
  const variants: TSchema[] = error.schema['anyOf']
  const other = variants.findIndex(({ type }) => type !== 'null')
  if (variants.length === 2 && variants[1 - other]?.['type'] === 'null') {
    const fault = error.errors[other]?.First()
    return fault !== undefined && isInside(fault, error) ? fault : undefined
  }
  if (!isRecord(error.value)) return undefined
  const type = error.value['type']
  const index = variants.findIndex((variant) => variant['properties']?.type?.const === type)
  return type === undefined ? undefined : error.errors[index]?.First()
}

/** Whether a part or a limit of the value is at fault, not its type. */
function isInside(fault: ValueError, union: ValueError): boolean {
  return (
    fault.path !== union.path || describeError(fault) !== `must be ${nameOfSchema(fault.schema)}`
  )
}

/** The names of fields in a body may have any length; an error is no copy of them. */
const pathCharsMax = 200

/** A path in a body for an error. */
export function shortenPath(path: string): string {
  return path.length <= pathCharsMax ? path : `${path.slice(0, pathCharsMax).toWellFormed()}…`
}

/** `/filters/1/value` (a JSON pointer) → `filters[1].value`. */
function readablePath(pointer: string): string {
  return pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((step, index) => {
      if (/^\d+$/.test(step)) return `[${step}]`
      return index === 0 ? step : `.${step}`
    })
    .join('')
}

function describeError({ type, schema }: ValueError): string {
  switch (type) {
    case ValueErrorType.ObjectRequiredProperty:
      return 'is required'
    case ValueErrorType.ObjectAdditionalProperties:
      return 'is not a known field'
    case ValueErrorType.StringMinLength:
      return schema['minLength'] === 1
        ? 'must not be empty'
        : `must have at least ${schema['minLength']} characters`
    case ValueErrorType.StringMaxLength:
      return `must have at most ${schema['maxLength']} characters`
    case ValueErrorType.StringFormat:
    case ValueErrorType.StringPattern:
      return `does not have the form of ${schema.description ?? 'such a value'}`
    case ValueErrorType.ArrayMinItems:
      return schema['minItems'] === 1
        ? 'must not be empty'
        : `must have at least ${schema['minItems']} items`
    case ValueErrorType.ArrayMaxItems:
      return `must have at most ${schema['maxItems']} items`
    case ValueErrorType.ObjectMaxProperties:
      return `must have at most ${schema['maxProperties']} fields`
    case ValueErrorType.NumberMinimum:
    case ValueErrorType.IntegerMinimum:
      return `must be at least ${schema['minimum']}`
    case ValueErrorType.NumberMaximum:
    case ValueErrorType.IntegerMaximum:
      return `must be at most ${schema['maximum']}`
    default:
      return `must be ${nameOfSchema(schema)}`
  }
}

function nameOfSchema(schema: TSchema): string {
  if ('const' in schema) return JSON.stringify(schema['const'])
  const variants: unknown = schema['anyOf']
  if (Array.isArray(variants)) {
    return [...new Set(variants.map((variant) => nameOfSchema(variant)))].join(' or ')
  }
  switch (schema['type']) {
    case 'null':
      return 'null'
    case 'object':
    case 'array':
      return `an ${schema['type']}`
    case 'integer':
      return 'a whole number'
    case 'number':
      return schema['multipleOf'] === 1 ? 'a whole number' : 'a number'
    case 'string':
    case 'boolean':
      return `a ${schema['type']}`
    default:
      return 'of another type'
  }
}
