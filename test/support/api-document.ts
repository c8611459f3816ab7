import { dereference, type OutputUnit, validate } from '@cfworker/json-schema'
import { asRecord, type JsonObject } from '#lib/json.ts'
import type { Gateway } from './gateway.ts'

/** One operation of the OpenAPI document. */
export type Operation = {
  /** In upper case. */
  readonly method: string
  readonly path: string
  /** `GET /v1/models` */
  readonly place: string
  readonly said: JsonObject
}

export type ApiDocument = {
  readonly whole: JsonObject
  readonly operations: readonly Operation[]
  /** Why a schema of this document rejects a value. */
  faultsOf(schema: unknown, value: unknown): string[]
  /** Resolves a `$ref`; returns anything else unchanged. */
  resolve(part: unknown): unknown
}

export async function readApiDocument(gateway: Pick<Gateway, 'url'>): Promise<ApiDocument> {
  const httpResponse = await fetch(`${gateway.url}/openapi.json`)
  if (!httpResponse.ok) throw new Error(`there is no document: ${await httpResponse.text()}`)
  const whole = asRecord(await httpResponse.json())
  return {
    whole,
    operations: listOperations(whole),
    faultsOf: createChecker(whole),
    resolve(part) {
      const { $ref: reference } = asRecord(part)
      if (typeof reference !== 'string') return part
      const steps = reference.replace(/^#\//, '').split('/')
      return steps.reduce<unknown>((found, step) => asRecord(found)[step], whole)
    },
  }
}

function listOperations({ paths }: JsonObject): Operation[] {
  return Object.entries(asRecord(paths)).flatMap(([path, operations]) =>
    Object.entries(asRecord(operations)).map(([name, said]) => {
      const method = name.toUpperCase()
      return { method, path, place: `${method} ${path}`, said: asRecord(said) }
    }),
  )
}

const base = 'https://document/'

function createChecker({ components }: JsonObject) {
  // Every schema that is checked can refer to the named schemas.
  const { schemas } = structuredClone(asRecord(components))
  const known = dereference({ components: { schemas } }, {}, new URL(base))
  return (schema: unknown, value: unknown): string[] => {
    const own = structuredClone(asRecord(schema))
    const lookup = { ...known, ...dereference(own, {}, new URL('#/checked', base)) }
    const { valid, errors } = validate(value, own, '2020-12', lookup, false)
    return valid ? [] : deepest(errors)
  }
}

/** The faults that cause other ones. */
function deepest(errors: readonly OutputUnit[]): string[] {
  const depth = Math.max(
    ...errors.map(({ instanceLocation }) => instanceLocation.split('/').length),
  )
  return errors
    .filter(({ instanceLocation }) => instanceLocation.split('/').length === depth)
    .map(({ instanceLocation, error }) => `${instanceLocation}: ${error}`)
}
