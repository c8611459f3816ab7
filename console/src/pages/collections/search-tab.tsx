import { useState } from 'preact/hooks'
import { call, type ResponseOf } from '../../api/call.ts'
import type { Collection } from '../../api/generated/types.ts'
import { format, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { Empty, Fault, Notice } from '../../ui/notice.tsx'
import { useAction } from '../../ui/query.ts'
import { Highlighted } from './highlight.tsx'

type Results = ResponseOf<'POST /v1/collections/{name}/search'>
type Hit = Results['data'][number]

const modes = ['hybrid', 'keyword', 'vector'] as const
const reranks = ['auto', 'yes', 'no'] as const
const counts = ['5', '10', '20', '50']

/** Searches a collection as models do, and says why each passage was found. */
export function SearchTab({ collection }: { collection: Collection }) {
  const [query, setQuery] = useState('')
  const [mode, setMode] = useState<(typeof modes)[number]>('hybrid')
  const [rerank, setRerank] = useState<(typeof reranks)[number]>('auto')
  const [count, setCount] = useState('5')
  const [found, setFound] = useState<Results | null>(null)
  const [fault, setFault] = useState<unknown>()
  const [isBusy, run] = useAction()
  const submit = () =>
    run(async () => {
      setFault(undefined)
      try {
        const body = {
          query,
          mode,
          top_k: Number(count),
          ...(rerank === 'auto' ? {} : { rerank: rerank === 'yes' }),
        }
        setFound(
          await call('POST /v1/collections/{name}/search', { path: { name: collection.id }, body }),
        )
      } catch (error) {
        setFound(null)
        setFault(error)
      }
    })
  return (
    <div class="stack">
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault()
          if (query.trim() !== '') void submit()
        }}
      >
        <div class="row filters">
          <div class="grow">
            <TextField
              type="search"
              label={text('collections.query')}
              placeholder={text('collections.query_hint')}
              value={query}
              onValue={setQuery}
            />
          </div>
          <Button kind="primary" type="submit" disabled={isBusy || query.trim() === ''}>
            {text('collections.search')}
          </Button>
        </div>
        <div class="row filters">
          <SelectField
            label={text('collections.mode')}
            value={mode}
            onValue={(value) => setMode(value as typeof mode)}
            options={modes.map((value) => ({ value, label: text(`collections.mode.${value}`) }))}
          />
          <SelectField
            label={text('collections.rerank')}
            value={rerank}
            onValue={(value) => setRerank(value as typeof rerank)}
            options={reranks.map((value) => ({
              value,
              label: text(`collections.rerank.${value}`),
            }))}
          />
          <SelectField
            label={text('collections.count')}
            value={count}
            onValue={setCount}
            options={counts.map((value) => ({ value, label: value }))}
          />
        </div>
      </form>
      <div class="stack" aria-live="polite" aria-busy={isBusy}>
        {fault !== undefined && <Fault error={fault} />}
        {found !== null && <Found found={found} />}
        {found === null && fault === undefined && (
          <div class="card">
            <Empty icon="search" title={text('collections.search_first')}>
              {text('collections.search_first_hint')}
            </Empty>
          </div>
        )}
      </div>
    </div>
  )
}

function Found({ found: { data, retrieval, search_query: queries } }: { found: Results }) {
  const [query = ''] = queries
  return (
    <>
      {retrieval.degraded.map((step) => (
        <Notice key={step} kind="warn">
          {text(`collections.degraded.${step === 'reranker' ? step : 'vector'}`)}
        </Notice>
      ))}
      {data.length === 0 ? (
        <Empty icon="files" title={text('collections.no_hits')}>
          {text('collections.no_hits_hint')}
        </Empty>
      ) : (
        <p class="small muted">
          {text('collections.found', {
            count: data.length,
            time: format.ms(retrieval.took_ms),
            kind: text(`collections.score.${retrieval.score_kind}`),
          })}
        </p>
      )}
      <ol class="hits">
        {data.map((hit) => (
          <HitCard key={hit.chunk.id} hit={hit} query={query} />
        ))}
      </ol>
    </>
  )
}

function HitCard({ hit, query }: { hit: Hit; query: string }) {
  const { filename, chunk, content } = hit
  return (
    <li class="card hit">
      <div class="row between">
        <strong class="anywhere">{filename}</strong>
        <span class="small muted">
          {chunk.page === null
            ? text('collections.passage', { number: chunk.index + 1 })
            : text('collections.page', { number: chunk.page })}
        </span>
      </div>
      <p class="passage">
        {content.map(({ text: passage }, at) => (
          <Highlighted key={at} passage={passage} query={query} />
        ))}
      </p>
      <Reasons hit={hit} />
    </li>
  )
}

/** The steps of the search that found a passage, with their scores. */
function Reasons({ hit: { match, score } }: { hit: Hit }) {
  const steps = [
    { name: 'keyword', value: match.keyword },
    { name: 'similarity', value: match.similarity },
    { name: 'rerank', value: match.rerank },
  ] as const
  return (
    <dl class="reasons">
      <div>
        <dt>{text('collections.total')}</dt>
        <dd>{decimal(score)}</dd>
      </div>
      {steps.map(
        ({ name, value }) =>
          value !== null && (
            <div key={name} title={text(`collections.match_hint.${name}`)}>
              <dt>{text(`collections.match.${name}`)}</dt>
              <dd>{decimal(value)}</dd>
            </div>
          ),
      )}
    </dl>
  )
}

function decimal(value: number): string {
  return format.number(value, { maximumFractionDigits: 3 })
}
