CREATE TABLE "usage_day" (
	"day" timestamp with time zone NOT NULL,
	"user_id" uuid DEFAULT '00000000-0000-0000-0000-000000000000' NOT NULL,
	"key_id" uuid DEFAULT '00000000-0000-0000-0000-000000000000' NOT NULL,
	"agent_id" uuid DEFAULT '00000000-0000-0000-0000-000000000000' NOT NULL,
	"model" text NOT NULL,
	"upstream" text NOT NULL,
	"kind" text NOT NULL,
	"outcome" text NOT NULL,
	"requests" bigint DEFAULT 0 NOT NULL,
	"estimated" bigint DEFAULT 0 NOT NULL,
	"retries" bigint DEFAULT 0 NOT NULL,
	"input_tokens" bigint DEFAULT 0 NOT NULL,
	"cached_tokens" bigint DEFAULT 0 NOT NULL,
	"cache_write_tokens" bigint DEFAULT 0 NOT NULL,
	"output_tokens" bigint DEFAULT 0 NOT NULL,
	"reasoning_tokens" bigint DEFAULT 0 NOT NULL,
	"audio_ms" bigint DEFAULT 0 NOT NULL,
	"cost_nanos" bigint,
	"duration_ms" bigint DEFAULT 0 NOT NULL,
	CONSTRAINT "usage_day_key" PRIMARY KEY("day","user_id","key_id","kind","outcome","agent_id","model","upstream")
);
--> statement-breakpoint
CREATE INDEX "usage_day_user" ON "usage_day" USING btree ("user_id","day");