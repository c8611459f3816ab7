import { type SchemaOptions, Type } from '@sinclair/typebox'
import { parseAttributes } from '#files/attributes.ts'
import type { NewFile, OnConflict } from '#files/files.ts'
import { AppError } from '#lib/errors.ts'
import { parseJson } from '#lib/json.ts'
import { refusedField } from '#lib/unprocessable.ts'
import { isUuid } from '#lib/uuid.ts'

/** What comes beside the bytes of a new file. */
export type UploadFields = Omit<NewFile, 'name' | 'content' | 'mimeType'> & {
  /** Null: the name that the file came with. */
  readonly name: string | null
}

const purposeForm = /^[a-z0-9_.-]{1,64}$/i
const conflictWords: readonly OnConflict[] = ['fail', 'rename', 'replace']
const collectionsMax = 20
/** What OpenAI allows: an hour to thirty days. */
const expiryS = { min: 3_600, max: 2_592_000 }

const word = (description: string, more: SchemaOptions = {}) =>
  Type.Optional(Type.String({ description, ...more }))

/** Texts, as a form and a query have them. */
export const uploadFields = Type.Object({
  name: word('The name of the file. A form may leave it to the name that the file comes with.'),
  folder_id: word("The id of a folder; absent, empty or `null`: the caller's top."),
  attributes: word('JSON: an object of at most 16 texts, numbers and booleans.'),
  collections: word(`JSON: a list of at most ${collectionsMax} names of collections to put it in.`),
  purpose: word('A word of at most 64 characters.', { default: 'user_data' }),
  on_conflict: Type.Optional(
    Type.Union(
      conflictWords.map((conflict) => Type.Literal(conflict)),
      {
        description:
          'Where the name is taken: refuse, give it a number, or replace the content of that file.',
        default: 'fail',
      },
    ),
  ),
  'expires_after[anchor]': Type.Optional(Type.Literal('created_at')),
  'expires_after[seconds]': word(
    `When it is deleted: ${expiryS.min} to ${expiryS.max} seconds after its creation.`,
  ),
})

/** The fields of a form, or of a query; throws a 422 that names the one at fault. */
export function readUploadFields(fields: ReadonlyMap<string, string>, now: Date): UploadFields {
  for (const field of fields.keys()) {
    if (field !== 'file' && !Object.hasOwn(uploadFields.properties, field)) {
      throw unknownField(field)
    }
  }
  return {
    name: fields.get('name') ?? null,
    folderId: readFolderId(fields.get('folder_id')),
    attributes: readJsonField(fields, 'attributes', {}, parseAttributes),
    collections: readJsonField(fields, 'collections', [], readCollections),
    purpose: readPurpose(fields.get('purpose') ?? 'user_data'),
    onConflict: readConflict(fields.get('on_conflict') ?? 'fail'),
    expiresAt: readExpiry(fields, now),
  }
}

/** A form has no null: `null` and nothing stand for the top of the caller's own tree. */
function readFolderId(value = ''): string | null {
  if (value === '' || value === 'null') return null
  if (isUuid(value)) return value.toLowerCase()
  throw refusedField('folder_id', 'must be the id of a folder, or null')
}

function readJsonField<T>(
  fields: ReadonlyMap<string, string>,
  name: string,
  otherwise: T,
  read: (value: unknown) => T,
): T {
  const text = fields.get(name) ?? ''
  if (text === '') return otherwise
  const value = parseJson(text)
  if (value === undefined) throw refusedField(name, 'must be JSON')
  return read(value)
}

function readCollections(value: unknown): string[] {
  const isList = Array.isArray(value) && value.every((name) => typeof name === 'string')
  if (!isList || value.length > collectionsMax) {
    throw refusedField('collections', `must be a list of at most ${collectionsMax} names`)
  }
  return [...new Set(value)]
}

function readPurpose(value: string): string {
  if (purposeForm.test(value)) return value
  throw refusedField('purpose', 'must be a word of at most 64 characters')
}

function readConflict(value: string): OnConflict {
  const word = conflictWords.find((conflict) => conflict === value)
  if (word !== undefined) return word
  throw refusedField('on_conflict', `must be one of ${conflictWords.join(', ')}`)
}

function readExpiry(fields: ReadonlyMap<string, string>, now: Date): Date | null {
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
  if (field !== 'folder_path') {
    return new AppError('unknown_field', `There is no field "${field}".`, { param: field })
  }
  return new AppError('removed_field', 'The field folder_path is gone; use folder_id.', {
    code: 'folder_path_removed',
    param: 'folder_path',
  })
}
