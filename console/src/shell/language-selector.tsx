import { chooseLanguage, language, nameOfLanguage, offeredLanguages, text } from '../texts/texts.ts'

/** More do not fit side by side. */
const buttonsMax = 3

export function LanguageSelector() {
  const offered = offeredLanguages()
  if (offered.length > buttonsMax) {
    return (
      <select
        class="input small"
        aria-label={text('app.language')}
        value={language.value}
        onChange={(event) => void chooseLanguage(event.currentTarget.value)}
      >
        {offered.map((tag) => (
          <option key={tag} value={tag} lang={tag}>
            {nameOfLanguage(tag)}
          </option>
        ))}
      </select>
    )
  }
  return (
    <fieldset class="segments" aria-label={text('app.language')}>
      {offered.map((tag) => (
        <button
          key={tag}
          type="button"
          lang={tag}
          aria-pressed={language.value === tag}
          aria-label={`${tag.toUpperCase()}, ${nameOfLanguage(tag)}`}
          onClick={() => void chooseLanguage(tag)}
        >
          {tag.toUpperCase()}
        </button>
      ))}
    </fieldset>
  )
}
