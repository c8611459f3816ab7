import { type Static, Type } from '@sinclair/typebox'
import { readQuery } from '#api/query.ts'
import { parseAttributes } from '#files/attributes.ts'
import type { NewFile } from '#files/files.ts'
import { folderPathRemoved, oneOf } from '#files/schema.ts'
import { AppError } from '#lib/errors.ts'
import { parseJson } from '#lib/json.ts'
import { refusedField } from '#lib/unprocessable.ts'
import { isUuid } from '#lib/uuid.ts'

/** The fields of an upload, without its content. */
export type UploadFields = Omit<NewFile, 'name' | 'content' | 'mimeType'> & {
  /** Null: the file name of the form. */
  readonly name: string | null
}

const collectionsMax = 20
/** As in OpenAI's API: an hour to thirty days. */
export const expiryS = { minimum: 3_600, maximum: 2_592_000 }

export const purpose = {
  description: 'A label of at most 64 letters, digits, `_`, `-` or `.`.',
  pattern: '^[A-Za-z0-9_.-]{1,64}$',
}

const optionFields = Type.Object({
  purpose: Type.String({ ...purpose, default: 'user_data' }),
  on_conflict: Type.Optional(
    Type.Union(oneOf('fail', 'rename', 'replace', 'allow').anyOf, {
      description:
        'If the name is taken: refuse, add a number, replace the content of that file, or allow equal names. By default `allow` with a `purpose`, as in the API of OpenAI, else `fail`.',
    }),
  ),
  'expires_after[anchor]': Type.Optional(Type.Literal('created_at')),
  'expires_after[seconds]': Type.Optional(
    Type.Integer({ description: 'The lifetime of the file.', ...expiryS }),
  ),
})

const text = (description: string) => Type.Optional(Type.String({ description }))

/** The same for a form and a query. */
export const uploadFields = Type.Object({
  name: text('The name of the file; by default the file name of the form.'),
  folder_id: text(
    "The id of a folder; absent, empty or `null`: the top level of the caller's own tree.",
  ),
  attributes: text('JSON: an object of at most 16 strings, numbers and booleans.'),
  collections: text(`JSON: a list of at most ${collectionsMax} names of collections to add it to.`),
  ...Type.Partial(optionFields).properties,
})

/** Throws a 422 that names the field. */
export function parseUploadFields(fields: ReadonlyMap<string, string>): UploadFields {
  for (const field of fields.keys()) {
    if (field === 'folder_path') throw folderPathRemoved()
    if (field !== 'file' && !Object.hasOwn(uploadFields.properties, field)) {
      throw new AppError('unknown_field', `There is no field "${field}".`, { param: field })
    }
  }
  const search = new URLSearchParams([...fields]).toString()
  const options = readQuery(optionFields, search) as Static<typeof optionFields>
  return {
    name: fields.get('name') ?? null,
    folderId: parseFolderId(fields.get('folder_id')),
    attributes: parseJsonField(fields, 'attributes', {}, parseAttributes),
    collections: parseJsonField(fields, 'collections', [], parseCollections),
    purpose: options.purpose,
    onConflict: options.on_conflict ?? (fields.has('purpose') ? 'allow' : 'fail'),
    lifetimeS: lifetimeOf(options),
  }
}

/** Forms have no null, so the text `null` and an empty field stand for the top level. */
function parseFolderId(value = ''): string | null {
  if (value === '' || value === 'null') return null
  if (isUuid(value)) return value.toLowerCase()
  throw refusedField('folder_id', 'must be the id of a folder, or null')
}

function parseJsonField<T>(
  fields: ReadonlyMap<string, string>,
  name: string,
  fallback: T,
  parse: (value: unknown) => T,
): T {
  const text = fields.get(name) ?? ''
  if (text === '') return fallback
  const value = parseJson(text)
  if (value === undefined) throw refusedField(name, 'must be JSON')
  return parse(value)
}

function parseCollections(value: unknown): string[] {
  const isList = Array.isArray(value) && value.every((name) => typeof name === 'string')
  if (!isList || value.length > collectionsMax) {
    throw refusedField('collections', `must be a list of at most ${collectionsMax} names`)
  }
  return [...new Set(value)]
}

function lifetimeOf(options: Static<typeof optionFields>): number | null {
  const { 'expires_after[anchor]': anchor, 'expires_after[seconds]': seconds } = options
  if (anchor === undefined && seconds === undefined) return null
  if (anchor === undefined) throw refusedField('expires_after[anchor]', 'must be created_at')
  if (seconds === undefined) throw refusedField('expires_after[seconds]', 'is required')
  return seconds
}
