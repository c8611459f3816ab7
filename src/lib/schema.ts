import type { Static, TSchema } from '@sinclair/typebox'
import {
  type TypeCheck,
  TypeCompiler,
  type ValueError,
  ValueErrorType,
} from '@sinclair/typebox/compiler'
import { isRecord } from './json.ts'

export type SchemaFault = {
  /** Where in the value, as a caller would write it: `filters[1].value`; empty for the whole. */
  path: string
  /** One sentence that names the place and what is expected there. */
  message: string
  /** Whether the fault is a field that the schema does not know. */
  unknownField: boolean
}

export type Checker<T extends TSchema> = {
  check(value: unknown): value is Static<T>
  /** The fault to tell the caller about; null for a value that fits. */
  firstError(value: unknown): SchemaFault | null
}

/** An unknown field is told before other faults, as it is often the reason for them. */
const faultsSeenMax = 20

/**
 * A check of values against a schema, compiled once, when the first value comes: a start would take a
 * tenth longer with all of them. It changes nothing and converts nothing.
 */
export function compileChecker<T extends TSchema>(schema: T): Checker<T> {
  let compiled: TypeCheck<T> | undefined
  const checked = () => {
    compiled ??= TypeCompiler.Compile(schema)
    return compiled
  }
  return {
    check: (value): value is Static<T> => checked().Check(value),
    firstError(value) {
      if (checked().Check(value)) return null
      const faults: SchemaFault[] = []
      for (const error of checked().Errors(value)) {
        const fault = describeFault(error)
        if (fault.unknownField) return fault
        faults.push(fault)
        if (faults.length === faultsSeenMax) break
      }
      return faults[0] ?? null
    },
  }
}

function describeFault(error: ValueError): SchemaFault {
  const inner = faultOfMeantVariant(error)
  if (inner !== undefined) return describeFault(inner)
  const path = readablePath(error.path)
  return {
    path,
    message: `${path === '' ? 'The value' : `"${path}"`} ${complaint(error)}.`,
    unknownField: error.type === ValueErrorType.ObjectAdditionalProperties,
  }
}

/** In a union of objects that are told apart by `type`, the fault of the one that was meant. */
function faultOfMeantVariant(error: ValueError): ValueError | undefined {
  if (error.type !== ValueErrorType.Union || !isRecord(error.value)) return undefined
  const variants: TSchema[] = error.schema['anyOf']
  const meant = error.value['type']
  const index = variants.findIndex((variant) => variant['properties']?.type?.const === meant)
  return meant === undefined ? undefined : error.errors[index]?.First()
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

function complaint({ type, schema }: ValueError): string {
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
