import {
  type SchemaOptions,
  type Static,
  type TObject,
  type TProperties,
  type TSchema,
  Type,
} from '@sinclair/typebox'
import type { QueryReader } from '#api/endpoint.ts'
import { readQuery } from '#api/query.ts'
import { AppError } from '#lib/errors.ts'
import { isRecord } from '#lib/json.ts'
import { type Checker, compileChecker } from '#lib/schema.ts'
import { refused, refusedBySchema } from '#lib/unprocessable.ts'
import type { OnConflict } from './files.ts'

const uuidForm = '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'
/** Names have at most 255 bytes; much longer ones are refused unparsed. */
const nameCharsMax = 1_024

export const strict = <T extends TProperties>(fields: T) =>
  Type.Object(fields, { additionalProperties: false })
export const oneOf = <Value extends string>(...values: Value[]) =>
  Type.Union(values.map((value) => Type.Literal(value)))
export const id = () => Type.String({ pattern: uuidForm, description: 'an id' })
/** A null field counts as absent. */
export const optional = <T extends TSchema>(
  schema: T,
  options: Pick<SchemaOptions, 'description' | 'default'> = {},
) => Type.Optional(Type.Union([schema, Type.Null()], options))
const name = () =>
  Type.String({ description: 'A name of at most 255 bytes.', maxLength: nameCharsMax })
const onConflict = () =>
  optional(oneOf('fail', 'rename'), {
    description: '`rename`: adds a number if the name is taken.',
    default: 'fail',
  })
const destinationId = () =>
  Type.Union([id(), Type.Null()], { description: "Null: the top level of the caller's own tree." })
const parentId = () =>
  optional(id(), {
    description: "The parent folder; absent or null: the top level of the caller's own tree.",
  })

export const newFolder = strict({
  name: name(),
  folder_id: parentId(),
  on_conflict: onConflict(),
})
const nodeChange = {
  name: Type.Optional(name()),
  folder_id: Type.Optional(destinationId()),
  on_conflict: onConflict(),
}
export const folderChange = strict(nodeChange)
export const fileChange = strict({
  ...nodeChange,
  attributes: Type.Optional(
    Type.Unknown({
      description:
        'A merge patch: an object of strings, numbers and booleans; null removes an attribute, or all of them. At most 16 keys and 512 characters per string.',
    }),
  ),
})
export const move = strict({ folder_id: destinationId(), on_conflict: onConflict() })
export const copy = strict({
  folder_id: parentId(),
  name: optional(name(), { description: 'By default the name of the source.' }),
  on_conflict: onConflict(),
})
export const restore = strict({ on_conflict: onConflict() })

const newFolderChecker = compileChecker(newFolder)
const fileChangeChecker = compileChecker(fileChange)
const folderChangeChecker = compileChecker(folderChange)
const moveChecker = compileChecker(move)
const copyChecker = compileChecker(copy)
const restoreChecker = compileChecker(restore)

type NameConflict = { readonly onConflict: Exclude<OnConflict, 'replace'> }

export function parseNewFolder(
  body: unknown,
): NameConflict & { name: string; folderId: string | null } {
  const { name, folder_id: folderId = null, on_conflict } = parseFields(newFolderChecker, body)
  return { name, folderId, onConflict: on_conflict ?? 'fail' }
}

export type ParsedChange = NameConflict & {
  readonly name?: string
  readonly attributes?: unknown
  readonly folderId?: string | null
}

export function parseFileChange(body: unknown): ParsedChange {
  const { attributes, ...fields } = parseFields(fileChangeChecker, body)
  return { ...changeOf(fields), ...(attributes === undefined ? {} : { attributes }) }
}

export function parseFolderChange(body: unknown): ParsedChange {
  return changeOf(parseFields(folderChangeChecker, body))
}

export function parseMove(body: unknown): ParsedChange {
  return changeOf(parseFields(moveChecker, body))
}

function changeOf({
  name,
  folder_id: folderId,
  on_conflict,
}: Static<typeof folderChange>): ParsedChange {
  return {
    ...(name === undefined ? {} : { name }),
    ...(folderId === undefined ? {} : { folderId }),
    onConflict: on_conflict ?? 'fail',
  }
}

export function parseCopy(
  body: unknown,
): NameConflict & { folderId: string | null; name: string | null } {
  const { name = null, folder_id: folderId = null, on_conflict } = parseFields(copyChecker, body)
  return { name, folderId, onConflict: on_conflict ?? 'fail' }
}

export function parseRestore(body: unknown): NameConflict {
  return { onConflict: parseFields(restoreChecker, body).on_conflict ?? 'fail' }
}

/** Validates a body or query; throws a 422 that names the field. */
export function parseFields<T extends TSchema>(checker: Checker<T>, value: unknown): Static<T> {
  if (!isRecord(value)) throw refused('', 'The body must be an object.')
  if ('folder_path' in value) throw folderPathRemoved()
  if (checker.check(value)) return value
  throw refusedBySchema(checker.firstError(value))
}

/** The query of a deletion; throws a 422 that names the parameter. */
export function deletionQuery<T extends TObject>(schema: T): QueryReader<Static<T>> {
  return {
    schema,
    read(params) {
      if (params.has('folder_path')) throw folderPathRemoved()
      return readQuery(schema, String(params)) as Static<T>
    },
  }
}

export function folderPathRemoved(): AppError {
  return new AppError('removed_field', '"folder_path" was removed; use "folder_id".', {
    param: 'folder_path',
    code: 'folder_path_removed',
  })
}
