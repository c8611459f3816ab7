import { withNulls } from '#api/described.ts'
import { json, operation } from '#docs/operation.ts'
import { searchExample, searchPage } from './answer-schema.ts'
import { searchBody } from './schema.ts'

export const searchOperations = {
  search: operation({
    tag: 'Collections',
    summary: 'Search a collection',
    description: [
      'Finds the passages that fit best, by vectors, by words, or by both. What the caller may not read is never looked at.',
      'With a reranker configured it puts the best first, unless `rerank` is false. What could not be asked is named in `retrieval.degraded`; the rest is answered all the same.',
    ].join('\n\n'),
    path: { id: 'The name of the collection, or its id.' },
    body: {
      content: json(withNulls(searchBody), {
        query: 'How long is the warranty?',
        filters: [{ field: 'language', operator: 'in', value: ['en', 'de'] }],
        top_k: 5,
      }),
    },
    answers: { 200: { description: 'Passages.', content: json(searchPage, searchExample) } },
    errors: {
      not_found: 'There is no collection "handbooks".',
      unprocessable: [
        { code: 'query_empty', message: '"query" must not be empty.' },
        { code: 'query_too_long', message: '"query" must have at most 10000 characters.' },
        {
          code: 'filter_type_mismatch',
          message:
            '"filters[0].value" must be a string with the operator "==", of at most 1024 characters.',
        },
        { code: 'unknown_operator', message: '"filters[0].operator" must be "==" or "in".' },
        {
          code: 'reranker_not_configured',
          message: 'No model of mode rerank is configured.',
        },
      ],
      unknown_field: '"limit" is not a known field.',
      removed_field: {
        code: 'filter_removed',
        message: '"filter" is not taken any more; send "filters", a list of conditions.',
      },
      service_unavailable: [
        {
          code: 'index_unavailable',
          message: 'The query cannot be turned into a vector just now.',
        },
      ],
    },
  }),
}
