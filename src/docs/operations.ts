import { Type } from '@sinclair/typebox'
import { bytes, json, operation } from './operation.ts'

const tag = 'Operations'
const page = {
  200: { description: 'The page.', content: bytes('text/html') },
}
const draining = { draining: 'The server is shutting down.' }

export const docsOperations = {
  document: operation({
    tag,
    summary: 'Read this document',
    description: 'OpenAPI 3.1. It is the same until the next release.',
    answers: {
      200: {
        description: 'The document.',
        content: json(
          Type.Object(
            {
              openapi: Type.String(),
              info: Type.Object({}, { additionalProperties: true }),
              paths: Type.Object({}, { additionalProperties: true }),
            },
            { additionalProperties: true },
          ),
          { openapi: '3.1.0', info: { title: 'Sluice', version: '1.0.0' }, paths: {} },
        ),
        headers: { etag: 'Changes with the document.' },
      },
      304: { description: 'The caller has it already, by its `if-none-match`.' },
    },
    errors: draining,
  }),
  swagger: operation({
    tag,
    summary: 'Open the documentation in Swagger UI',
    answers: page,
    errors: draining,
  }),
  scalar: operation({
    tag,
    summary: 'Open the documentation in Scalar',
    answers: page,
    errors: draining,
  }),
  asset: operation({
    tag,
    summary: 'Load a script or a style sheet of these pages',
    path: { hash: 'The hash of its content.', name: 'The name of the file.' },
    answers: {
      200: {
        description: 'The file, which never changes under this path.',
        content: bytes('text/javascript', 'text/css'),
      },
    },
    errors: { not_found: 'There is no such file.', ...draining },
  }),
}
