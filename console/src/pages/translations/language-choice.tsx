import { useState } from 'preact/hooks'
import { language as shownLanguage, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'

const shipped = ['en', 'de']

/** "Deutsch (de)", in the language of the page. */
function languageName(tag: string): string {
  try {
    return `${new Intl.DisplayNames([shownLanguage.value], { type: 'language' }).of(tag)} (${tag})`
  } catch {
    return tag
  }
}

/** Null: not a language tag. */
function canonical(tag: string): string | null {
  try {
    return Intl.getCanonicalLocales(tag.trim())[0] ?? null
  } catch {
    return null
  }
}

export function LanguageChoice({
  language,
  known,
  onLanguage,
}: {
  language: string
  known: readonly string[]
  onLanguage: (language: string) => void
}) {
  const [isAdding, setAdding] = useState(false)
  const [tag, setTag] = useState('')
  const tags = [...new Set([...shipped, ...known, language])]
  const found = canonical(tag)
  return (
    <>
      <div class="schema-add">
        <SelectField
          label={text('translations.language')}
          value={language}
          onValue={onLanguage}
          options={tags.map((one) => ({ value: one, label: languageName(one) }))}
        />
        <Button icon="plus" onClick={() => setAdding(true)}>
          {text('translations.add_language')}
        </Button>
      </div>
      {isAdding && (
        <Dialog
          title={text('translations.add_language')}
          onClose={() => setAdding(false)}
          onSubmit={() => {
            if (found === null) return
            setAdding(false)
            setTag('')
            onLanguage(found)
          }}
          actions={
            <>
              <Button onClick={() => setAdding(false)}>{text('action.cancel')}</Button>
              <Button kind="primary" type="submit" disabled={found === null}>
                {text('schema.add')}
              </Button>
            </>
          }
        >
          <TextField
            label={text('translations.tag')}
            hint={found === null ? text('translations.tag_hint') : languageName(found)}
            fault={tag !== '' && found === null ? text('translations.tag_hint') : undefined}
            placeholder="fr"
            value={tag}
            onValue={setTag}
          />
        </Dialog>
      )}
    </>
  )
}
