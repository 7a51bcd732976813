import js from '@eslint/js'
import tseslint from 'typescript-eslint'

export default tseslint.config(
  {
    ignores: [
      'dist/**',
      'coverage/**',
      '.engines/**',
      'docs/api/**',
      'test/fixtures/**',
      'test/package/consumer/**',
      'src/adapters/envoy/grpc/gen/**',
    ],
  },
  js.configs.recommended,
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: {
      parserOptions: {
        projectService: {
          allowDefaultProject: [
            '*.js',
            '*.mjs',
            'scripts/*.mjs',
            '.ci/*.mjs',
            'test/programs/*.cjs',
          ],
        },
      },
    },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/unified-signatures': 'off',
      '@typescript-eslint/prefer-promise-reject-errors': 'off', // an abort rejects with signal.reason, whatever it is
      '@typescript-eslint/only-throw-error': 'off', // the same
      'no-restricted-syntax': [
        'error',
        { selector: 'TSEnumDeclaration', message: 'Use a union of string literals.' },
        { selector: 'ExportDefaultDeclaration', message: 'Use named exports.' },
        {
          selector: "ImportDeclaration[source.value=/^zod/] > ImportSpecifier[imported.name='z']",
          message:
            "import * as z from 'zod/mini': the object `z` brings all of zod into every bundle.",
        },
      ],
    },
  },
  {
    files: ['src/**'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          name: 'zod',
          message: "Use 'zod/mini': a method chain keeps all of zod in every bundle.",
        },
      ],
    },
  },
  {
    files: ['src/**', 'scripts/**', 'test/support/**'],
    // ESLint's own limit. At 15 it was switched off for sixty tables of one rule a line.
    rules: { complexity: ['error', 20] },
  },
  {
    // A fake's method that finds no such member rejects, and does not throw.
    files: ['src/testing/**'],
    rules: { '@typescript-eslint/require-await': 'off' },
  },
  {
    files: ['test/**', 'bench/**'],
    rules: {
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/require-await': 'off',
    },
  },
  {
    files: ['*.config.ts', '*.config.js'],
    rules: { 'no-restricted-syntax': 'off' },
  },
  {
    files: ['**/*.js', '**/*.mjs', '**/*.cjs'],
    ...tseslint.configs.disableTypeChecked,
    languageOptions: {
      globals: {
        process: 'readonly',
        console: 'readonly',
        URL: 'readonly',
        Buffer: 'readonly',
        require: 'readonly',
        setTimeout: 'readonly',
        clearTimeout: 'readonly',
      },
    },
    rules: {
      ...tseslint.configs.disableTypeChecked.rules,
      '@typescript-eslint/no-require-imports': 'off',
    },
  },
)
