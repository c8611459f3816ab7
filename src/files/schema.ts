import {
  type SchemaOptions,
  type Static,
  type TProperties,
  type TSchema,
  Type,
} from '@sinclair/typebox'
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
export const optional = <T extends TSchema>(
  schema: T,
  told: Pick<SchemaOptions, 'description' | 'default'> = {},
) => Type.Optional(Type.Union([schema, Type.Null()], told))
const name = () =>
  Type.String({ description: 'A name of at most 255 bytes.', maxLength: nameCharsMax })
const conflictWord = () =>
  optional(oneOf('fail', 'rename'), {
    description: '`rename`: where the name is taken, it gets a number.',
    default: 'fail',
  })
const idOrNull = () =>
  Type.Union([id(), Type.Null()], { description: "Null: the top of the caller's own tree." })
const topIfAbsent = { description: "The folder to put it in; absent or null: the caller's top." }

export const newFolder = strict({
  name: name(),
  folder_id: optional(id(), topIfAbsent),
  on_conflict: conflictWord(),
})
const folderChanges = {
  name: Type.Optional(name()),
  folder_id: Type.Optional(idOrNull()),
  on_conflict: conflictWord(),
}
export const folderChange = strict(folderChanges)
export const fileChange = strict({
  ...folderChanges,
  attributes: Type.Optional(
    Type.Unknown({
      description:
        'A merge patch: an object of texts, numbers and booleans; null takes one away, and null for all of them takes all away. At most 16 keys and 512 characters in a text.',
    }),
  ),
})
export const move = strict({ folder_id: idOrNull(), on_conflict: conflictWord() })
export const copy = strict({
  folder_id: optional(id(), topIfAbsent),
  name: optional(name(), { description: 'Absent: the name of the file that is copied.' }),
  on_conflict: conflictWord(),
})
export const restore = strict({ on_conflict: conflictWord() })
const switched = (description: string) =>
  Type.Optional(
    Type.Union([Type.Literal('true'), Type.Literal('false')], { description, default: 'false' }),
  )
export const fileRemoval = strict({
  permanent: switched('Deletes it for ever, also out of the trash. Only its owner may.'),
})
export const folderRemoval = strict({ recursive: switched('Also where it is not empty.') })

const newFolderChecker = compileChecker(newFolder)
const fileChangeChecker = compileChecker(fileChange)
const folderChangeChecker = compileChecker(folderChange)
const moveChecker = compileChecker(move)
const copyChecker = compileChecker(copy)
const restoreChecker = compileChecker(restore)
const fileRemovalChecker = compileChecker(fileRemoval)
const folderRemovalChecker = compileChecker(folderRemoval)

type Conflict = Exclude<OnConflict, 'replace'>

export function readNewFolder(body: unknown): {
  name: string
  folderId: string | null
  onConflict: Conflict
} {
  const fields = readFields(newFolderChecker, body)
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
  const { attributes, ...rest } = readFields(fileChangeChecker, body)
  return { ...changeOf(rest), ...(attributes === undefined ? {} : { attributes }) }
}

export function readFolderChange(body: unknown): ReadChange {
  return changeOf(readFields(folderChangeChecker, body))
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
  return changeOf(readFields(moveChecker, body))
}

export function readCopy(body: unknown): {
  folderId: string | null
  name: string | null
  onConflict: Conflict
} {
  const fields = readFields(copyChecker, body)
  return {
    folderId: fields.folder_id ?? null,
    name: fields.name ?? null,
    onConflict: fields.on_conflict ?? 'fail',
  }
}

export function readRestore(body: unknown): { onConflict: Conflict } {
  return { onConflict: readFields(restoreChecker, body).on_conflict ?? 'fail' }
}

export function readRemoval(
  kind: 'file' | 'folder',
  query: unknown,
): { isRecursive: boolean; isPermanent: boolean } {
  if (kind === 'file') {
    return {
      isRecursive: true,
      isPermanent: readFields(fileRemovalChecker, query).permanent === 'true',
    }
  }
  return {
    isRecursive: readFields(folderRemovalChecker, query).recursive === 'true',
    isPermanent: false,
  }
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
