import type { OutputFormat } from '#inference/request.ts'
import type { JsonObject } from '#lib/json.ts'
import { findSchemaFault } from '#lib/json-schema.ts'
import { badField, createReader, readType } from './read-object.ts'
import { outputConfig, schemaFormat } from './schema.ts'

const readConfig = createReader(outputConfig)
const readFormat = createReader(schemaFormat)

export type ParsedOutput = { effort: string | null; format: OutputFormat }

/** The protocol has no name for a schema, and upstreams demand one. */
const schemaName = 'answer'

/** `output_config` of a request, or the `output_format` that was before it. */
export function parseOutput(
  config: JsonObject | undefined,
  olderFormat: JsonObject | undefined,
): ParsedOutput {
  const { effort = null, format } = readConfig(config ?? {}, 'output_config')
  if (format !== undefined) return { effort, format: parseFormat(format, 'output_config.format') }
  return { effort, format: parseFormat(olderFormat, 'output_format') }
}

function parseFormat(format: JsonObject | undefined, path: string): OutputFormat {
  if (format === undefined) return { type: 'text' }
  if (readType(format, path) !== 'json_schema')
    throw badField(`${path}.type`, 'must be json_schema')
  const { schema } = readFormat(format, path)
  const fault = findSchemaFault(schema)
  if (fault !== null) throw badField(`${path}.schema`, `is no JSON Schema: ${fault}`)
  return { type: 'json-schema', name: schemaName, description: null, schema, strict: true }
}
