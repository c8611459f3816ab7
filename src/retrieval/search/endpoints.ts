import { withNulls } from '#api/described.ts'
import { type Endpoint, endpoint, json, jsonBody } from '#api/endpoint.ts'
import { ambiguousName, referenceHint } from '#retrieval/collections/schema.ts'
import { renderSearch, searchExample, searchPage } from './record.ts'
import { readSearch, searchBody } from './schema.ts'
import type { Search } from './search.ts'

export function searchEndpoints({ search }: { search: Search }): Endpoint[] {
  return [
    endpoint({
      method: 'POST',
      path: '/v1/collections/:id/search',
      permission: 'can_access_api',
      tag: 'Collections',
      summary: 'Search a collection',
      description: `Finds the best matching passages by vectors, by keywords, or by both, among the files that the caller may find.

A configured reranker orders the results, unless \`rerank\` is false. Steps that failed are named in
\`retrieval.degraded\`; the search continues without them.`,
      params: { id: referenceHint },
      body: jsonBody(withNulls(searchBody), {
        example: {
          query: 'How long is the warranty?',
          filters: [{ field: 'language', operator: 'in', value: ['en', 'de'] }],
          top_k: 5,
        },
        read: readSearch,
      }),
      responses: { 200: { description: 'Passages.', content: json(searchPage, searchExample) } },
      errors: {
        not_found: 'There is no collection "handbooks".',
        unprocessable: [
          ambiguousName,
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
          message: '"filter" was removed; send "filters", a list of conditions.',
        },
        service_unavailable: {
          code: 'index_unavailable',
          message: 'The query could not be embedded.',
        },
      },
      async handle({ params: { id }, body, context }) {
        const response = await search(context, { ...body, collections: [id] })
        return renderSearch(response, body.queries)
      },
    }),
  ]
}
