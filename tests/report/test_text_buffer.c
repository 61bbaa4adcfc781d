/*
 * test_text_buffer.c - every byte comes out as XML and HTML allow it.
 */
#include "text_buffer.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"

#define FFFD "\xEF\xBF\xBD"

static char *escaped(const char *data, int attribute) {
  text_buffer b = {NULL, 0, 0, 0};
  if (attribute)
    text_attribute(&b, data);
  else
    text_data(&b, data);
  return text_take(&b);
}

static void gives(const char *data, const char *wanted, int attribute) {
  char *got = escaped(data, attribute);
  ck_assert_str_eq(got, wanted);
  free(got);
}

START_TEST(markup_is_escaped) {
  gives("a<b>&\"c'", "a&lt;b&gt;&amp;&quot;c&#39;", 0);
  gives("]]>", "]]&gt;", 0);
  gives("a\tb\nc\rd", "a\tb\nc&#13;d", 0);
  gives("a\tb\nc\rd", "a&#9;b&#10;c&#13;d", 1);
  gives("", "", 0);
}
END_TEST

/* One byte alone: 1 to 127 as they are or replaced, 128 on always. */
START_TEST(every_byte_alone) {
  for (int c = 1; c < 256; c++) {
    char data[4] = {'<', (char)c, '>', '\0'};
    char *got = escaped(data, 0);
    REQUIRE(strncmp(got, "&lt;", 4) == 0, "byte %d", c);
    const char *middle = got + 4;
    int control = c < 32 && c != '\t' && c != '\n' && c != '\r';
    if (control || c >= 127)
      REQUIRE(strcmp(middle, FFFD "&gt;") == 0, "byte %d gives %s", c, middle);
    else if (!strchr("&<>\"'\r", c))
      REQUIRE(middle[0] == c, "byte %d gives %s", c, middle);
    free(got);
  }
}
END_TEST

static size_t encode(uint32_t c, char *s) {
  if (c < 0x80) return s[0] = (char)c, (size_t)1;
  if (c < 0x800) {
    s[0] = (char)(0xC0 | c >> 6);
    s[1] = (char)(0x80 | (c & 63));
    return 2;
  }
  if (c < 0x10000) {
    s[0] = (char)(0xE0 | c >> 12);
    s[1] = (char)(0x80 | (c >> 6 & 63));
    s[2] = (char)(0x80 | (c & 63));
    return 3;
  }
  s[0] = (char)(0xF0 | c >> 18);
  s[1] = (char)(0x80 | (c >> 12 & 63));
  s[2] = (char)(0x80 | (c >> 6 & 63));
  s[3] = (char)(0x80 | (c & 63));
  return 4;
}

/* XML 1.0's characters, without the C1 controls that HTML has no place for. */
START_TEST(every_character) {
  for (uint32_t c = 0x80; c < 0x110800; c++) {
    char data[8] = {0};
    encode(c, data);
    int allowed = c > 0x9F && !(c >= 0xD800 && c <= 0xDFFF) && c != 0xFFFE &&
                  c != 0xFFFF && c <= 0x10FFFF;
    char *got = escaped(data, 0);
    REQUIRE(allowed == (strcmp(got, data) == 0), "U+%04X gives %s", (unsigned)c,
            got);
    REQUIRE(allowed || strncmp(got, FFFD, 3) == 0, "U+%04X gives %s",
            (unsigned)c, got);
    free(got);
  }
}
END_TEST

START_TEST(what_is_cut_or_too_long_is_replaced) {
  gives("\xE2\x82", FFFD FFFD, 0);
  gives("\xE2\x82<", FFFD FFFD "&lt;", 0);
  gives("\xC0\xAF", FFFD FFFD, 0);
  gives("\xE0\x80\xAF", FFFD FFFD FFFD, 0);
  gives("\xF0\x80\x80\xAF", FFFD FFFD FFFD FFFD, 0);
  gives("\xC2", FFFD, 0);
  gives("\xF8\x88\x80\x80\x80", FFFD FFFD FFFD FFFD FFFD, 0);
}
END_TEST

START_TEST(json_gets_utf8_with_controls_kept) {
  char *got = text_utf8("a\x01\xFF\xC3\xA9\xED\xA0\x80");
  ck_assert_str_eq(got, "a\x01" FFFD "\xC3\xA9" FFFD FFFD FFFD);
  free(got);
}
END_TEST

START_TEST(it_grows) {
  text_buffer b = {NULL, 0, 0, 0};
  for (int i = 0; i < 10000; i++) text_add(&b, "%d,", i % 10);
  char *text = text_take(&b);
  ck_assert_uint_eq(strlen(text), 20000);
  ck_assert_str_eq(text + 19994, "7,8,9,");
  free(text);
  text = text_take(&b);
  ck_assert_str_eq(text, "");
  free(text);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("text_buffer");
  TCase *tests = tcase_create("text_buffer");
  tcase_add_test(tests, markup_is_escaped);
  tcase_add_test(tests, every_byte_alone);
  tcase_add_test(tests, every_character);
  tcase_add_test(tests, what_is_cut_or_too_long_is_replaced);
  tcase_add_test(tests, json_gets_utf8_with_controls_kept);
  tcase_add_test(tests, it_grows);
  tcase_set_timeout(tests, 60);
  suite_add_tcase(suite, tests);
  return check_main(suite);
}
