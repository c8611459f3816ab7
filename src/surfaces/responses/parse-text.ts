import type { OutputFormat } from '#inference/request.ts'
import { deepFreeze } from '#lib/frozen.ts'
import type { JsonObject } from '#lib/json.ts'
import { findSchemaFault } from '#lib/json-schema.ts'
import { invalidField, readObject, readType } from './read-object.ts'
import { jsonSchemaFormat, type ResponseEcho, textOptions } from './schema/request.ts'

export type ParsedText = {
  format: OutputFormat
  verbosity: string | null
  echo: ResponseEcho['text']
}

const plainText: ParsedText = deepFreeze({
  format: { type: 'text' },
  verbosity: null,
  echo: { format: { type: 'text' } },
})

/** Parses `text`, the format of the output. */
export function parseText(value: JsonObject | undefined): ParsedText {
  if (value === undefined) return plainText
  const { format: requested, verbosity } = readObject(textOptions, value, 'text')
  const format = parseFormat(requested)
  return {
    format,
    verbosity: verbosity ?? null,
    echo: { format: echoFormat(format), ...(verbosity === undefined ? {} : { verbosity }) },
  }
}

function parseFormat(format: JsonObject | undefined): OutputFormat {
  if (format === undefined) return { type: 'text' }
  const path = 'text.format'
  switch (readType(format, path)) {
    case 'text':
      return { type: 'text' }
    case 'json_object':
      return { type: 'json-object' }
    case 'json_schema': {
      const {
        name,
        description = null,
        schema,
        strict = null,
      } = readObject(jsonSchemaFormat, format, path)
      const fault = findSchemaFault(schema)
      if (fault !== null)
        throw invalidField(`${path}.schema`, `is not a valid JSON Schema: ${fault}`)
      return { type: 'json-schema', name, description, schema, strict }
    }
    default:
      throw invalidField(`${path}.type`, 'must be one of text, json_object, json_schema')
  }
}

function echoFormat(format: OutputFormat): ResponseEcho['text']['format'] {
  if (format.type !== 'json-schema') return { type: format.type.replace('-', '_') }
  const { name, description, schema, strict } = format
  return { type: 'json_schema', name, description, schema, strict: strict ?? false }
}
