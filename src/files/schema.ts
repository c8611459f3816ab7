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

const uuidForm = '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'
/** Names have at most 255 bytes; much longer ones are refused unparsed. */
const nameCharsMax = 1_024

export const strict = <T extends TProperties>(fields: T) =>
  Type.Object(fields, { additionalProperties: false })
export const oneOf = <Value extends string>(...values: Value[]) =>
  Type.Union(values.map((value) => Type.Literal(value)))
export const id = () => Type.String({ pattern: uuidForm, description: 'an id' })
export const retrievalStatus = oneOf(
  'RAG Available',
  'Processing',
  'Pending',
  'Not Supported',
  'Failed',
)
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

export const parseNewFolder = parserOf(newFolder, (fields) => ({
  ...placementOf(fields),
  name: fields.name,
}))
export const parseCopy = parserOf(copy, (fields) => ({
  ...placementOf(fields),
  name: fields.name ?? null,
}))
export const parseRestore = parserOf(restore, onConflictOf)
export const parseMove = parserOf(move, changeOf)
export const parseFolderChange = parserOf(folderChange, changeOf)
export const parseFileChange = parserOf(fileChange, ({ attributes, ...fields }) => ({
  ...changeOf(fields),
  ...(attributes === undefined ? {} : { attributes }),
}))

export type ParsedChange = ReturnType<typeof parseFileChange>

/** Of a body; throws a 422 that names the field. */
function parserOf<T extends TSchema, R>(schema: T, read: (fields: Static<T>) => R) {
  const checker = compileChecker(schema)
  return (body: unknown): R => read(parseFields(checker, body))
}

function onConflictOf(fields: Static<typeof restore>) {
  return { onConflict: fields.on_conflict ?? ('fail' as const) }
}

function placementOf(fields: Pick<Static<typeof copy>, 'folder_id' | 'on_conflict'>) {
  return { folderId: fields.folder_id ?? null, ...onConflictOf(fields) }
}

function changeOf({ name, folder_id: folderId, ...fields }: Static<typeof folderChange>) {
  return {
    ...(name === undefined ? {} : { name }),
    ...(folderId === undefined ? {} : { folderId }),
    ...onConflictOf(fields),
  }
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
