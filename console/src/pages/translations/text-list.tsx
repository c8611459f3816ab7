import { useEffect, useState } from 'preact/hooks'
import { format, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { Empty } from '../../ui/notice.tsx'
import type { Query } from '../../ui/query.ts'
import { type Column, Table } from '../../ui/table.tsx'
import { Segments } from '../../ui/tabs.tsx'
import {
  type Filter,
  idOf,
  matches,
  placeholderFaults,
  type TextDraft,
  type TextRow,
} from './texts-model.ts'

const filters = ['all', 'changed', 'missing'] as const
const shownStep = 50

/** Texts with their originals, to search, filter and edit. */
export function TextList({
  language,
  rows,
  query,
  draft,
  onChange,
}: {
  language: string
  rows: readonly TextRow[] | undefined
  query: Query<unknown>
  draft: TextDraft
  onChange: (id: string, text: string, before: string) => void
}) {
  const [search, setSearch] = useState('')
  const [filter, setFilter] = useState<Filter>('all')
  const [namespace, setNamespace] = useState('')
  const [shownMax, setShownMax] = useState(shownStep)
  const namespaces = [...new Set(rows?.map((row) => row.namespace))]
  const conditions = { draft, filter, search: search.trim().toLowerCase() }
  const found = rows?.filter(
    (row) => (namespace === '' || row.namespace === namespace) && matches(row, conditions),
  )
  useEffect(() => setShownMax(shownStep), [search, filter, namespace])
  const columns: readonly Column<TextRow>[] = [
    {
      name: 'key',
      label: text('settings.key'),
      cell: (row) => (
        <div class="breaking text-key">
          <code>{row.key}</code>
          {namespaces.length > 1 && <div class="small muted">{row.namespace}</div>}
        </div>
      ),
    },
    {
      name: 'original',
      label: text('translations.original'),
      cell: ({ original, isForeign }) => (
        <div class="breaking text-original" lang={isForeign ? 'en' : language}>
          {original === '' ? (
            <span class="muted">{text('translations.no_original')}</span>
          ) : (
            original
          )}{' '}
          {isForeign && original !== '' && (
            <span class="tag">{text('translations.not_translated')}</span>
          )}
        </div>
      ),
    },
    {
      name: 'text',
      label: text('translations.text'),
      cell: (row) => (
        <TextInput row={row} language={language} draft={draft[idOf(row)]} onChange={onChange} />
      ),
    },
  ]
  return (
    <>
      <div class="row between filters">
        <TextField
          type="search"
          label={text('translations.search')}
          value={search}
          onValue={setSearch}
        />
        {namespaces.length > 1 && (
          <SelectField
            label={text('translations.namespace')}
            value={namespace}
            onValue={setNamespace}
            options={[
              { value: '', label: text('translations.all_namespaces') },
              ...namespaces.map((name) => ({ value: name, label: name })),
            ]}
          />
        )}
        <Segments
          label={text('translations.filter')}
          choices={filters.map((name) => ({ name, label: text(`translations.filter.${name}`) }))}
          selected={filter}
          onSelect={setFilter}
        />
      </div>
      <div class="texts">
        <Table
          label={text('translations.title')}
          columns={columns}
          query={query}
          rows={found?.slice(0, shownMax)}
          keyOf={idOf}
          empty={
            <Empty icon="translations" title={text(`translations.none.${filter}`)}>
              {text(`translations.none_hint.${filter}`)}
            </Empty>
          }
        />
      </div>
      {found !== undefined && found.length > 0 && (
        <div class="row between">
          <span class="small muted" role="status">
            {text('translations.shown', {
              shown: format.number(Math.min(shownMax, found.length)),
              count: format.number(found.length),
            })}
          </span>
          {found.length > shownMax && (
            <Button size="small" onClick={() => setShownMax(shownMax + shownStep)}>
              {text('translations.more')}
            </Button>
          )}
        </div>
      )}
    </>
  )
}

function TextInput({
  row,
  language,
  draft,
  onChange,
}: {
  row: TextRow
  language: string
  draft: string | undefined
  onChange: (id: string, text: string, before: string) => void
}) {
  const before = row.override ?? ''
  const value = draft ?? before
  const faults = placeholderFaults(row.original, value)
  const id = `text-${row.namespace}-${row.key}`.replace(/[^\w-]/g, '_')
  const hasFault = faults.length > 0
  return (
    <div class="row text-edit">
      <div class="grow field">
        <textarea
          class={draft === undefined ? 'input' : 'input changed'}
          rows={1}
          lang={language}
          aria-label={text('translations.text_of', { key: row.key })}
          placeholder={row.isForeign ? '' : row.original}
          value={value}
          onInput={(event) => onChange(idOf(row), event.currentTarget.value, before)}
          {...(hasFault ? { 'aria-invalid': 'true', 'aria-describedby': id } : {})}
        />
        {hasFault && (
          <span id={id} class="fault">
            {text('translations.placeholders', { names: faults.join(' ') })}
          </span>
        )}
      </div>
      <Button
        kind="quiet"
        size="small"
        icon="trash"
        disabled={value === ''}
        label={text('translations.remove', { key: row.key })}
        onClick={() => onChange(idOf(row), '', before)}
      />
    </div>
  )
}
