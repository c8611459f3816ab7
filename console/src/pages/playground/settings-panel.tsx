import { call } from '../../api/call.ts'
import type { Model } from '../../api/generated/types.ts'
import { VoiceFields } from '../../speaking/voice-fields.tsx'
import { chosenVoice } from '../../speaking/voices.ts'
import { text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { AreaField, Checkbox, SelectField, TextField } from '../../ui/field.tsx'
import { useQuery } from '../../ui/query.ts'
import { Segments } from '../../ui/tabs.tsx'
import { changeSettings, settings } from './conversation.ts'
import { exampleFormat, exampleTools, faultOf, parseFormat, parseTools } from './settings.ts'

const efforts = ['', 'minimal', 'low', 'medium', 'high'] as const

export function SettingsPanel({ models }: { models: readonly Model[] }) {
  const { model, surface, instructions, effort, temperature, maxTokens, isStored } = settings.value
  const isResponses = surface === 'responses'
  return (
    <aside class="card card-body stack settings-panel" aria-label={text('playground.settings')}>
      <SelectField
        label={text('playground.model')}
        value={model}
        onValue={(value) => changeSettings({ model: value })}
        options={models.map(({ id, name, owned_by: owner }) => ({
          value: id,
          label: name ?? id,
          group: text(owner === 'agent' ? 'playground.agents' : 'playground.models'),
        }))}
      />
      <div class="field">
        <span class="label">{text('playground.surface')}</span>
        <div>
          <Segments
            label={text('playground.surface')}
            choices={[
              { name: 'responses', label: 'Responses' },
              { name: 'messages', label: 'Messages' },
            ]}
            selected={surface}
            onSelect={(value) => changeSettings({ surface: value })}
          />
        </div>
      </div>
      <AreaField
        label={text('playground.instructions')}
        rows={3}
        placeholder={text('playground.instructions_hint')}
        value={instructions}
        onValue={(value) => changeSettings({ instructions: value })}
      />
      <SelectField
        label={text('playground.effort')}
        value={effort}
        onValue={(value) => changeSettings({ effort: value as (typeof efforts)[number] })}
        options={efforts.map((value) => ({
          value,
          label: text(value === '' ? 'playground.effort.default' : `playground.effort.${value}`),
        }))}
      />
      <div class="pair">
        <TextField
          label={text('playground.temperature')}
          type="number"
          min={0}
          max={2}
          step={0.1}
          placeholder={text('playground.default')}
          value={temperature}
          onValue={(value) => changeSettings({ temperature: value })}
        />
        <TextField
          label={text('playground.max_tokens')}
          type="number"
          min={1}
          step={1}
          placeholder={text('playground.default')}
          value={maxTokens}
          onValue={(value) => changeSettings({ maxTokens: value })}
        />
      </div>
      {isResponses && <CollectionField />}
      <JsonField field="tools" parse={parseTools} example={exampleTools} />
      <JsonField field="format" parse={parseFormat} example={exampleFormat} />
      {chosenVoice.value !== null && (
        <details class="option">
          <summary>{text('voice.title')}</summary>
          <div class="stack tight">
            <VoiceFields />
          </div>
        </details>
      )}
      {isResponses && (
        <Checkbox
          label={text('playground.store')}
          hint={text('playground.store_hint')}
          checked={isStored}
          onChecked={(checked) => changeSettings({ isStored: checked })}
        />
      )}
    </aside>
  )
}

/** Lets the model search one collection. */
function CollectionField() {
  const { data } = useQuery(
    (signal) => call('GET /v1/vector_stores', { signal, query: { limit: 100 } }),
    'vector stores',
  )
  if (data === undefined || data.data.length === 0) return null
  return (
    <SelectField
      label={text('playground.collection')}
      value={settings.value.collection}
      onValue={(value) => changeSettings({ collection: value })}
      options={[
        { value: '', label: text('playground.collection_none') },
        ...data.data.map(({ id, name }) => ({ value: id, label: name ?? id })),
      ]}
    />
  )
}

function JsonField({
  field,
  parse,
  example,
}: {
  field: 'tools' | 'format'
  parse: (value: string) => unknown
  example: string
}) {
  const value = settings.value[field]
  const fault = faultOf(parse, value)
  return (
    <details class="option" open={value !== ''}>
      <summary>{text(`playground.${field}`)}</summary>
      <div class="stack tight">
        <AreaField
          mono
          rows={8}
          label={text(`playground.${field}_label`)}
          fault={fault === null ? null : text('playground.json_fault', { fault })}
          value={value}
          onValue={(next) => changeSettings({ [field]: next })}
        />
        {value === '' && (
          <div>
            <Button size="small" onClick={() => changeSettings({ [field]: example })}>
              {text('playground.example')}
            </Button>
          </div>
        )}
      </div>
    </details>
  )
}
