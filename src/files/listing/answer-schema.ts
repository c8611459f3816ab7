import { type Static, Type } from '@sinclair/typebox'
import { instant, listOf, nullable } from '#api/shapes.ts'
import { fileRecord, folderRecord } from '#files/record.ts'
import { oneOf } from '#files/schema.ts'

/** What lists of files and folders look like. */

const next = nullable(Type.String(), 'Of the page behind this one; null on the last page.')
const hasMore = Type.Boolean({ description: 'Whether another page follows.' })

export const fileList = Type.Object({ ...listOf(fileRecord).properties, next })
export type FileList = Static<typeof fileList>

export const childList = Type.Object({
  object: Type.Literal('list'),
  folder: nullable(folderRecord, 'The folder itself; null for the top.'),
  data: Type.Array(Type.Union([folderRecord, fileRecord])),
  has_more: hasMore,
  next,
})
export type ChildList = Static<typeof childList>

const match = Type.Object({
  name: Type.String(),
  highlight: Type.Array(Type.Object({ start: Type.Integer(), end: Type.Integer() }), {
    description: 'Where the words stand in the name, in UTF-16 units; `end` is behind the last.',
  }),
})

export const foundList = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(
    Type.Union([
      Type.Object({ ...folderRecord.properties, match }),
      Type.Object({ ...fileRecord.properties, match }),
    ]),
  ),
  has_more: hasMore,
  next,
})
export type FoundList = Static<typeof foundList>

export const trashList = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(
    Type.Object({
      id: Type.String({ format: 'uuid' }),
      object: oneOf('file', 'folder'),
      name: Type.String(),
      trashed_at: instant('When it was deleted'),
    }),
  ),
})
export type TrashList = Static<typeof trashList>
