import type { TSchema } from '@sinclair/typebox'
import { isReloading } from '#config/keys.ts'
import { configSchema } from '#config/schema.ts'
import { asRecord, isRecord } from '#lib/json.ts'

type Schema = Readonly<Record<string, unknown>>

const intro = `# Configuration reference

Generated from the configuration schema by \`bun run docs:generate\`; do not edit.

Sluice reads \`./sluice.toml\`, or the file that \`SLUICE_CONFIG\` names. An environment variable
overrides the file. Invalid keys are all reported at once, and Sluice does not start with them.
\`bun run config\` prints the effective configuration without secrets.

The last word of a key is its unit: \`_ms\` milliseconds, \`_s\` seconds, \`_days\` days, \`_bytes_max\`
bytes, \`_chars_max\` characters. A dash means that the key is optional and has no default.

A key with *yes* under *reload* takes effect with a reload of the file ([operations](operations.md#reload-the-configuration)),
any other with a restart.

Environment variables without a key of their own: \`SLUICE_UPSTREAM_URL\`, \`SLUICE_UPSTREAM_API\` and
\`SLUICE_UPSTREAM_KEY\` add an \`[[upstream]]\` named \`default\`; \`SLUICE_STT_URL\` and
\`SLUICE_STT_ENGINE\` add an \`[[engine]]\` named \`default\`.
`

/** The reference page of all configuration keys, in Markdown. */
export function renderConfigReference(): string {
  const properties = Object.entries<Schema>(configSchema.properties)
  const sections = properties.filter(([, schema]) => fieldsOf(schema) !== null)
  const plain = properties.filter(([, schema]) => fieldsOf(schema) === null)
  return [
    intro,
    '## Top-level keys\n',
    table(plain, configSchema, false),
    ...sections.flatMap(([name, schema]) => [
      `## ${schema['type'] === 'array' ? `[[${snake(name)}]]` : `[${snake(name)}]`}\n`,
      `${schema['description']}\n`,
      table(fieldsOf(schema) ?? [], holderOf(schema), isReloading(schema as TSchema)),
    ]),
  ].join('\n')
}

/** The keys of a section or of the entries of a list; null for a key that has a value of its own. */
function fieldsOf(schema: Schema): [string, Schema][] | null {
  const properties = holderOf(schema)['properties']
  return isRecord(properties) ? (Object.entries(properties) as [string, Schema][]) : null
}

function holderOf(schema: Schema): Schema {
  return schema['type'] === 'array' ? asRecord(schema['items']) : schema
}

/** `reloads`: whether a reload changes all of them. */
function table(
  fields: readonly (readonly [string, Schema])[],
  { required }: Schema,
  reloads: boolean,
): string {
  const isRequired = (name: string) => Array.isArray(required) && required.includes(name)
  const rows = fields.map(([name, schema]) => {
    const initial = defaultOf(schema) ?? (isRequired(name) ? 'required' : '–')
    const reload = reloads || isReloading(schema as TSchema) ? 'yes' : ''
    return `| \`${snake(name)}\` | ${typeOf(schema)} | ${initial} | ${reload} | ${describe(schema)} |`
  })
  return ['| key | type | default | reload | meaning |', '|---|---|---|---|---|', ...rows, ''].join(
    '\n',
  )
}

function describe(schema: Schema): string {
  const variable = schema['env']
  const text = escapeCell(String(schema['description'] ?? ''))
  const secret = schema['secret'] === true ? ' Secret.' : ''
  const { key, env } = asRecord(schema['former'])
  const former =
    key === undefined
      ? ''
      : ` Formerly \`${snake(String(key))}\` and \`${env}\`, which are accepted with a warning.`
  return `${text}${secret}${typeof variable === 'string' ? ` Environment: \`${variable}\`.` : ''}${former}`
}

function defaultOf(schema: Schema): string | null {
  const value = schema['default']
  return value === undefined ? null : `\`${escapeCell(JSON.stringify(value))}\``
}

function typeOf(schema: Schema): string {
  const choices = schema['anyOf']
  if (Array.isArray(choices)) {
    return choices.map((choice: Schema) => `\`"${choice['const']}"\``).join(', ')
  }
  if (schema['const'] !== undefined) return `\`"${schema['const']}"\``
  if (schema['type'] === 'array') return `list of ${plural(schema['items'] as Schema)}`
  if (isRecord(schema['patternProperties'])) {
    return `table of ${plural(Object.values(schema['patternProperties'])[0] as Schema)}`
  }
  if (schema['type'] === 'integer' || schema['type'] === 'number') {
    return `${schema['type']}${range(schema)}`
  }
  return String(schema['type'])
}

function plural(schema: Schema): string {
  const type = typeOf(schema)
  return /^[a-z]+$/.test(type) ? `${type}s` : type
}

function range({ minimum, maximum }: Schema): string {
  if (minimum === undefined && maximum === undefined) return ''
  if (maximum === undefined) return ` ≥ ${minimum}`
  return minimum === undefined ? ` ≤ ${maximum}` : `, ${minimum}–${maximum}`
}

function snake(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

function escapeCell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;')
}
