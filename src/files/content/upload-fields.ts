import { type SchemaOptions, Type } from '@sinclair/typebox'
import { parseAttributes } from '#files/attributes.ts'
import type { NewFile, OnConflict } from '#files/files.ts'
import { folderPathRemoved } from '#files/schema.ts'
import { AppError } from '#lib/errors.ts'
import { parseJson } from '#lib/json.ts'
import { refusedField } from '#lib/unprocessable.ts'
import { isUuid } from '#lib/uuid.ts'

/** The fields of an upload, without its content. */
export type UploadFields = Omit<NewFile, 'name' | 'content' | 'mimeType'> & {
  /** Null: the file name of the form. */
  readonly name: string | null
}

const purposeForm = /^[a-z0-9_.-]{1,64}$/i
const conflictModes: readonly OnConflict[] = ['fail', 'rename', 'replace']
const collectionsMax = 20
/** As in OpenAI's API: an hour to thirty days. */
const expiryS = { min: 3_600, max: 2_592_000 }

const text = (description: string, options: SchemaOptions = {}) =>
  Type.Optional(Type.String({ description, ...options }))

/** The same for a form and a query. */
export const uploadFields = Type.Object({
  name: text('The name of the file; by default the file name of the form.'),
  folder_id: text(
    "The id of a folder; absent, empty or `null`: the top level of the caller's own tree.",
  ),
  attributes: text('JSON: an object of at most 16 strings, numbers and booleans.'),
  collections: text(`JSON: a list of at most ${collectionsMax} names of collections to add it to.`),
  purpose: text('A label of at most 64 letters, digits, `_`, `-` or `.`.', {
    default: 'user_data',
  }),
  on_conflict: Type.Optional(
    Type.Union(
      conflictModes.map((conflict) => Type.Literal(conflict)),
      {
        description:
          'If the name is taken: refuse, add a number, or replace the content of that file.',
        default: 'fail',
      },
    ),
  ),
  'expires_after[anchor]': Type.Optional(Type.Literal('created_at')),
  'expires_after[seconds]': text(
    `The lifetime of the file: ${expiryS.min} to ${expiryS.max} seconds.`,
  ),
})

/** Throws a 422 that names the field. */
export function parseUploadFields(fields: ReadonlyMap<string, string>, now: Date): UploadFields {
  for (const field of fields.keys()) {
    if (field !== 'file' && !Object.hasOwn(uploadFields.properties, field)) {
      throw unknownField(field)
    }
  }
  return {
    name: fields.get('name') ?? null,
    folderId: parseFolderId(fields.get('folder_id')),
    attributes: parseJsonField(fields, 'attributes', {}, parseAttributes),
    collections: parseJsonField(fields, 'collections', [], parseCollections),
    purpose: parsePurpose(fields.get('purpose') ?? 'user_data'),
    onConflict: parseConflict(fields.get('on_conflict') ?? 'fail'),
    expiresAt: parseExpiry(fields, now),
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
  read: (value: unknown) => T,
): T {
  const text = fields.get(name) ?? ''
  if (text === '') return fallback
  const value = parseJson(text)
  if (value === undefined) throw refusedField(name, 'must be JSON')
  return read(value)
}

function parseCollections(value: unknown): string[] {
  const isList = Array.isArray(value) && value.every((name) => typeof name === 'string')
  if (!isList || value.length > collectionsMax) {
    throw refusedField('collections', `must be a list of at most ${collectionsMax} names`)
  }
  return [...new Set(value)]
}

function parsePurpose(value: string): string {
  if (purposeForm.test(value)) return value
  throw refusedField('purpose', 'must be a label of at most 64 letters, digits, "_", "-" or "."')
}

function parseConflict(value: string): OnConflict {
  const mode = conflictModes.find((conflict) => conflict === value)
  if (mode !== undefined) return mode
  throw refusedField('on_conflict', `must be one of ${conflictModes.join(', ')}`)
}

function parseExpiry(fields: ReadonlyMap<string, string>, now: Date): Date | null {
  const anchor = fields.get('expires_after[anchor]')
  const seconds = fields.get('expires_after[seconds]')
  if (anchor === undefined && seconds === undefined) return null
  if (anchor !== 'created_at') throw refusedField('expires_after[anchor]', 'must be created_at')
  const afterS = /^\d{1,8}$/.test(seconds ?? '') ? Number(seconds) : 0
  if (afterS < expiryS.min || afterS > expiryS.max) {
    throw refusedField('expires_after[seconds]', `must be from ${expiryS.min} to ${expiryS.max}`)
  }
  return new Date(now.getTime() + afterS * 1000)
}

function unknownField(field: string): AppError {
  if (field === 'folder_path') return folderPathRemoved()
  return new AppError('unknown_field', `There is no field "${field}".`, { param: field })
}
