import { type Static, type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { AppError } from '#lib/errors.ts'
import { isRecord } from '#lib/json.ts'
import { type Checker, compileChecker } from '#lib/schema.ts'
import { refused, refusedBySchema } from '#lib/unprocessable.ts'
import type { OnConflict } from './files.ts'

/** The wire shapes of changes of files and folders. */

const uuidForm = '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'
/** A name has 255 bytes at most; what is much longer is not looked at. */
const nameCharsMax = 1_024

export const strict = <T extends TProperties>(fields: T) =>
  Type.Object(fields, { additionalProperties: false })
export const oneOf = <Word extends string>(...options: Word[]) =>
  Type.Union(options.map((word) => Type.Literal(word)))
export const id = () => Type.String({ pattern: uuidForm, description: 'an id' })
/** A field that is null counts as not given. */
export const optional = <T extends TSchema>(schema: T) =>
  Type.Optional(Type.Union([schema, Type.Null()]))
const name = () => Type.String({ maxLength: nameCharsMax })
const conflictWord = () => optional(oneOf('fail', 'rename'))
const idOrNull = () => Type.Union([id(), Type.Null()])

const newFolder = compileChecker(
  strict({ name: name(), folder_id: optional(id()), on_conflict: conflictWord() }),
)
const fileChange = compileChecker(
  strict({
    name: Type.Optional(name()),
    folder_id: Type.Optional(idOrNull()),
    attributes: Type.Optional(Type.Unknown()),
    on_conflict: conflictWord(),
  }),
)
const folderChange = compileChecker(
  strict({
    name: Type.Optional(name()),
    folder_id: Type.Optional(idOrNull()),
    on_conflict: conflictWord(),
  }),
)
const move = compileChecker(strict({ folder_id: idOrNull(), on_conflict: conflictWord() }))
const copy = compileChecker(
  strict({
    folder_id: optional(id()),
    name: optional(name()),
    on_conflict: conflictWord(),
  }),
)
const restore = compileChecker(strict({ on_conflict: conflictWord() }))
const switched = () => Type.Optional(oneOf('true', 'false'))
const fileRemoval = compileChecker(strict({ permanent: switched() }))
const folderRemoval = compileChecker(strict({ recursive: switched() }))

type Conflict = Exclude<OnConflict, 'replace'>

export function readNewFolder(body: unknown): {
  name: string
  folderId: string | null
  onConflict: Conflict
} {
  const fields = readFields(newFolder, body)
  return {
    name: fields.name,
    folderId: fields.folder_id ?? null,
    onConflict: fields.on_conflict ?? 'fail',
  }
}

export type ReadChange = {
  readonly name?: string
  readonly attributes?: unknown
  readonly folderId?: string | null
  readonly onConflict: Conflict
}

export function readFileChange(body: unknown): ReadChange {
  const { attributes, ...rest } = readFields(fileChange, body)
  return { ...changeOf(rest), ...(attributes === undefined ? {} : { attributes }) }
}

export function readFolderChange(body: unknown): ReadChange {
  return changeOf(readFields(folderChange, body))
}

function changeOf(fields: {
  name?: string
  folder_id?: string | null
  on_conflict?: Conflict | null
}): ReadChange {
  return {
    ...(fields.name === undefined ? {} : { name: fields.name }),
    ...(fields.folder_id === undefined ? {} : { folderId: fields.folder_id }),
    onConflict: fields.on_conflict ?? 'fail',
  }
}

export function readMove(body: unknown): ReadChange {
  return changeOf(readFields(move, body))
}

export function readCopy(body: unknown): {
  folderId: string | null
  name: string | null
  onConflict: Conflict
} {
  const fields = readFields(copy, body)
  return {
    folderId: fields.folder_id ?? null,
    name: fields.name ?? null,
    onConflict: fields.on_conflict ?? 'fail',
  }
}

export function readRestore(body: unknown): { onConflict: Conflict } {
  return { onConflict: readFields(restore, body).on_conflict ?? 'fail' }
}

export function readRemoval(
  kind: 'file' | 'folder',
  query: unknown,
): { isRecursive: boolean; isPermanent: boolean } {
  if (kind === 'file') {
    return { isRecursive: true, isPermanent: readFields(fileRemoval, query).permanent === 'true' }
  }
  return { isRecursive: readFields(folderRemoval, query).recursive === 'true', isPermanent: false }
}

/** The value of a body or a query; throws a 422 that names the field at fault. */
export function readFields<T extends TSchema>(checker: Checker<T>, value: unknown): Static<T> {
  if (!isRecord(value)) throw refused('', 'The body must be an object.')
  if ('folder_path' in value) throw folderPathRemoved()
  if (checker.check(value)) return value
  throw refusedBySchema(checker.firstError(value))
}

function folderPathRemoved(): AppError {
  return new AppError('removed_field', '"folder_path" was removed; use "folder_id".', {
    param: 'folder_path',
    code: 'folder_path_removed',
  })
}
